// The summary in numbers, the count of checks, and what broke.

import { byId, count, counted, duration, element, figure, instant, say } from './element.js';

const FIELDS = [
  ['owned', 'owned', 'partitions that somebody owns'],
  ['moving', 'moving', 'asked back, or being started'],
  ['misplaced', 'misplaced', 'not where they should be'],
  ['two', 'two owners', 'at this moment'],
  ['imbalance', 'imbalance', 'the greatest load against the mean'],
  ['range', 'least – most', 'loads of workers'],
  ['moves', 'moves', 'since the world began'],
];

/** The strip below the toolbar. */
export class Strip {
  #model;
  #api;
  #state = element('div', { class: 'state' }, element('i'), element('b'), element('span'));
  #values = {};

  constructor(model, api) {
    this.#model = model;
    this.#api = api;
    const list = element('dl', {});
    for (const [key, label, about] of FIELDS) {
      this.#values[key] = element('dd', {});
      list.append(element('div', { title: about, class: key }, element('dt', {}, label), this.#values[key]));
    }
    byId('strip').append(this.#state, list);
    byId('invariants').addEventListener('click', () => this.open());
    model.addEventListener('snapshot', () => this.#show());
    model.addEventListener('delta', () => this.#show());
  }

  /** Says which checks broke, and links to the trace. */
  open() {
    const dialog = byId('broken');
    const { checked, violations } = this.#model.invariants;
    const closing = element('button', { class: 'icon', 'aria-label': 'Close', onclick: () => dialog.close() }, '×');
    const good = element('p', {}, `${count(checked)} checks so far, after every step of the world, and each held: ` +
      'no partition with two owners who both may act, no token that goes back, nothing lost, and what else the protocol promises.');
    const list = element('ol', { class: 'violations' }, violations.map((violation) => element('li', {},
      element('b', {}, violation.invariant), ` ${violation.property}`,
      element('p', {}, violation.seen),
      element('small', {}, `at ${instant(violation.at_ms)} · `,
        element('button', { class: 'link', onclick: () => this.#trace(violation.trace) }, 'see the trace')))));
    const trace = element('pre', { class: 'trace', hidden: true, tabindex: 0, 'aria-label': 'Trace' });
    dialog.replaceChildren(element('header', { class: 'head' },
      element('h2', { id: 'broken-title' }, violations.length ? `${counted(violations.length, 'check')} failed` : 'Every check holds'),
      element('div', { class: 'fill' }), closing), violations.length ? list : good, trace);
    dialog.showModal();
  }

  async #trace(path) {
    const shown = byId('broken').querySelector('.trace');
    shown.hidden = false;
    shown.textContent = 'loading…';
    try {
      shown.textContent = await this.#api.text(path.replace(/^\/api\/v1\//, ''));
    } catch (error) {
      shown.textContent = error.message;
    }
  }

  #show() {
    const { summary, invariants, source } = this.#model;
    this.#showChecks(invariants, source);
    if (!summary) return;
    const [, word, since] = this.#state.children;
    const broken = summary.owned < summary.partitions;
    this.#state.className = `state ${summary.converged ? 'good' : broken ? 'bad' : 'busy'}`;
    say(word, summary.converged ? 'converged' : broken ? `${count(summary.partitions - summary.owned)} without owner` : 'settling');
    const { running } = this.#model.clock;
    say(since, running ? (summary.converged ? `for ${duration(summary.converged_for_ms)}` : '') : 'time is held');
    const values = this.#values;
    say(values.owned, `${count(summary.owned)} / ${count(summary.partitions)}`);
    say(values.moving, count(summary.moving));
    say(values.misplaced, figure(summary.misplaced));
    say(values.two, figure(summary.two_owners));
    say(values.imbalance, summary.imbalance ? summary.imbalance.toFixed(2) : '–');
    say(values.range, `${figure(summary.least)} – ${figure(summary.most)}`);
    say(values.moves, count(summary.moves));
    values.two.parentElement.classList.toggle('alarm', summary.two_owners > 0);
    values.owned.parentElement.classList.toggle('alarm', broken);
    values.moving.parentElement.classList.toggle('busy', summary.moving > 0);
    values.misplaced.parentElement.classList.toggle('busy', summary.misplaced > 0);
  }

  #showChecks({ checked, violations }, source) {
    const button = byId('invariants');
    const broken = violations.length > 0;
    button.classList.toggle('bad', broken);
    // Who only looks on checks nothing.
    button.hidden = source === 'observed' && checked === 0;
    say(button.querySelector('b'), broken ? count(violations.length) : count(checked));
    say(button.querySelector('span'), broken ? (violations.length === 1 ? 'check failed' : 'checks failed') : 'checks hold');
  }
}
