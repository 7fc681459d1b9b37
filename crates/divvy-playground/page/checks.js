// The checks: how many held, what broke, and the end of the trace that led there.

import { byId, count, counted, element, instant, say } from './element.js';

/** Lines of the trace that are shown: those before are of another story. */
const LINES = 2000;

/** The pill that counts them, and the dialog behind it. */
export class Checks {
  #model;
  #api;
  #dialog = byId('broken');

  constructor(model, api) {
    this.#model = model;
    this.#api = api;
    byId('invariants').addEventListener('click', () => this.open());
    for (const name of ['snapshot', 'delta']) model.addEventListener(name, () => this.#show());
  }

  /** Whether anything is checked here: who only looks on checks nothing. */
  get are() {
    const { source, invariants } = this.#model;
    return source !== 'observed' || invariants.checked > 0;
  }

  /** Says which checks broke, and links to the trace. */
  open() {
    if (!this.are || this.#dialog.open) return;
    const { violations } = this.#model.invariants;
    const closing = element('button', { class: 'icon', 'aria-label': 'Close', onclick: () => this.#dialog.close() }, '×');
    const list = element('ol', { class: 'violations' }, violations.map((violation) => element('li', {},
      element('b', {}, violation.invariant), ` ${violation.property}`,
      element('p', {}, violation.seen),
      element('small', {}, `at ${instant(violation.at_ms)} · `,
        element('button', { class: 'link', onclick: () => this.#trace(violation) }, 'see the trace')))));
    const trace = element('pre', { class: 'trace', hidden: true, tabindex: 0, 'aria-label': 'The end of the trace' });
    this.#dialog.replaceChildren(element('header', { class: 'head' },
      element('h2', { id: 'broken-title' }, violations.length ? `${counted(violations.length, 'check')} failed` : 'Every check holds'),
      element('div', { class: 'fill' }), closing), ...(violations.length ? [list] : this.#good()), trace);
    this.#dialog.showModal();
  }

  #good() {
    const { invariants, settings } = this.#model;
    const checked = `${count(invariants.checked)} checks so far, after every step of the world, and each held: `;
    if (settings.exclusive !== false) {
      return [element('p', {}, `${checked}no partition with two owners who both may act, no token that goes back, nothing lost, and what else the protocol promises.`)];
    }
    return [
      element('p', {}, `${checked}no token that goes back, nothing lost, and what else the protocol promises in overlap mode.`),
      element('p', { class: 'unpromised' }, element('b', {}, 'One owner at a time: '), 'not promised in overlap mode. ',
        'A partition may run on its old and its new worker at once for a while.'),
    ];
  }

  /** The trace ends where it broke, so that is what is shown of it first. */
  async #trace({ trace: path, at_ms }) {
    const shown = this.#dialog.querySelector('.trace');
    shown.hidden = false;
    shown.textContent = 'loading…';
    try {
      const text = await this.#api.text(path.replace(/^\/api\/v1\//, ''));
      shown.replaceChildren(...marked(text.trimEnd().split('\n').slice(-LINES), at_ms));
    } catch (error) {
      shown.textContent = error.message;
    }
    const last = [...shown.querySelectorAll('mark')].at(-1);
    shown.scrollTop = last ? last.offsetTop - shown.clientHeight * 0.7 : shown.scrollHeight;
    shown.focus({ preventScroll: true });
  }

  #show() {
    const { checked, violations } = this.#model.invariants;
    const button = byId('invariants');
    const broken = violations.length > 0;
    button.classList.toggle('bad', broken);
    button.hidden = !this.are;
    button.title = this.#model.settings.exclusive === false ? 'One owner at a time is not promised in overlap mode' : 'What is checked (i)';
    say(button.querySelector('b'), broken ? count(violations.length) : count(checked));
    say(button.querySelector('span'), broken ? (violations.length === 1 ? 'check failed' : 'checks failed') : 'checks hold');
  }
}

/** Lines of a trace, those of one millisecond marked; each begins with its time in seconds. */
function marked(lines, atMs) {
  const here = (line) => Math.floor(Number.parseFloat(line) * 1000 + 1e-6) === Math.floor(atMs);
  // Where nothing was written in that millisecond, it broke with the last line before.
  const first = lines.findIndex(here);
  const at = first >= 0 ? lines.findLastIndex(here) : lines.findLastIndex((line) => Number.parseFloat(line) * 1000 <= atMs + 1);
  if (at < 0) return [lines.join('\n')];
  const from = first >= 0 ? first : at;
  const head = lines.slice(0, from).map((line) => `${line}\n`).join('');
  const rest = lines.slice(at + 1).map((line) => `${line}\n`).join('');
  return [head, element('mark', {}, lines.slice(from, at + 1).join('\n')), rest];
}
