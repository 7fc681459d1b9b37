// Why a partition is where it is: the sentence, the ranking, and the history of its owners.

import { duration, element, figure, instant, say } from './element.js';
import { markNamed } from './model.js';

const ASK_AGAIN_MS = 700;

/** The pane of a partition. Emits `worker` (a number). */
export class Explanation extends EventTarget {
  root = element('div', { class: 'detail explanation' });
  title;
  #context;
  #why = element('p', { class: 'why', 'aria-live': 'polite' });
  #method = element('p', { class: 'method' });
  #facts = element('p', { class: 'quiet' });
  #ranking = element('tbody', {});
  #table;
  #parts = {};
  #owners = element('ol', { class: 'owners' });
  #asking = false;
  #again = false;
  #askedAt = 0;
  #shown = '';

  constructor(context, name) {
    super();
    this.#context = context;
    this.title = name;
    const head = ['', 'worker', 'score', 'hash'].map((text) => element('th', { scope: 'col' }, text));
    this.#table = element('table', { class: 'ranking' }, element('thead', {}, element('tr', {}, head)), this.#ranking);
    this.root.append(this.#why, this.#method, this.#facts, this.#forms(),
      element('h3', {}, 'Ranking'), this.#table,
      element('h3', {}, 'Owners'), this.#owners);
    this.#ask();
  }

  /** The world changed. */
  follow({ moved, workers }) {
    const mine = this.#context.model.indexOf(this.title);
    if (moved.some(({ index }) => index === mine) || (workers.length > 0 && performance.now() - this.#askedAt > ASK_AGAIN_MS)) this.#ask();
  }

  tick() {}

  async #ask() {
    // One question at a time; what changed meanwhile is asked for after it.
    if (this.#asking) {
      this.#again = true;
      return;
    }
    this.#asking = true;
    this.#askedAt = performance.now();
    try {
      this.#show(await this.#context.api.get(`partitions/${encodeURIComponent(this.title)}`));
    } catch (error) {
      say(this.#why, error.message);
    }
    this.#asking = false;
    if (this.#again) {
      this.#again = false;
      setTimeout(() => this.#ask(), ASK_AGAIN_MS);
    }
  }

  #show(answer) {
    const key = JSON.stringify(answer);
    // What stands is left alone: somebody may have the focus on it.
    if (key === this.#shown) return;
    this.#shown = key;
    const { model } = this.#context;
    const also = (answer.also ?? []).map((number) => model.nameOf(number));
    say(this.#why, also.length > 0 ? `${answer.why}; ${also.join(' and ')} ${also.length === 1 ? 'runs' : 'run'} it as well` : answer.why);
    this.#why.classList.toggle('bad', also.length > 0 || answer.mark === 9);
    say(this.#method, answer.method ?? '');
    this.#method.hidden = !answer.method;
    this.#parts.pin.hidden = !model.can('pin') || answer.pinned === true;
    this.#parts.unpin.hidden = !model.can('unpin') || answer.pinned !== true;
    const mark = markNamed(answer.mark);
    say(this.#facts, [
      answer.pinned && 'pinned',
      `owner ${model.nameOf(answer.owner)}${also.length > 0 ? ` and ${also.join(' and ')}` : ''}`,
      answer.token && `token ${answer.token}`,
      `weight ${figure(answer.weight)}`,
      mark,
    ].filter(Boolean).join(' · '));
    // What is pinned is not ranked: there is nothing to compare.
    this.#table.classList.toggle('unranked', answer.ranking.every(({ score, hash }) => score === null && hash === null));
    const most = Math.max(...answer.ranking.map(({ score }) => score ?? 0)) || 1;
    this.#ranking.replaceChildren(...answer.ranking.map((row, at) => this.#rank(row, at, answer.owner, most)));
    const owners = answer.owners.toReversed();
    this.#owners.replaceChildren(...owners.map((owner) => this.#owner(owner)));
    if (owners.length === 0) this.#owners.append(element('li', { class: 'quiet' }, 'nobody yet'));
  }

  #rank({ worker, name, hash, score, weight, eligible, why_not }, at, owner, most) {
    const colour = this.#context.palette.owner(worker);
    return element('tr', { class: `${worker === owner ? 'owns' : ''} ${eligible ? '' : 'out'}` },
      element('td', {}, String(at + 1)),
      element('td', {}, element('button', { class: 'link', title: name, vars: { owner: colour }, onclick: () => this.#emit('worker', worker) }, element('i', { class: 'swatch' }), name),
        worker === owner ? element('span', { class: 'badge' }, 'owner') : null,
        why_not ? element('span', { class: 'badge' }, why_not) : null,
        weight === 1 ? null : element('span', { class: 'badge' }, `weight ${figure(weight)}`)),
      element('td', {}, score === null ? '–' : element('span', { class: 'score', vars: { part: Math.max(0, score / most), owner: colour } }, element('i'), score.toPrecision(3))),
      element('td', { class: 'hash' }, hash ?? '–'));
  }

  #owner({ worker, name, token, from_ms, until_ms, cause, text }) {
    const reason = text || cause;
    const span = until_ms === null ? 'until now' : `for ${duration(until_ms - from_ms)}`;
    return element('li', { vars: { owner: this.#context.palette.owner(worker) } },
      element('i', { class: 'swatch' }), element('b', {}, name), token === null ? null : ` token ${token}`,
      element('small', {}, `from ${instant(from_ms)} ${span}${reason ? ` · ${reason}` : ''}`));
  }

  #forms() {
    const { model, deeds } = this.#context;
    const weight = element('input', { type: 'number', min: 0.01, max: 1000, step: 'any', required: true, 'aria-label': 'Weight of the partition', value: model.weights?.[model.indexOf(this.title)] ?? 1 });
    const alive = [...model.workers.values()].filter((worker) => worker.alive);
    const target = element('select', { 'aria-label': 'Pin to' }, alive.map(({ number, name }) => element('option', { value: number }, name)));
    const sends = (run) => (event) => {
      event.preventDefault();
      run();
    };
    this.#parts.pin = element('form', { hidden: true, onsubmit: sends(() => deeds.act('pin', { partition: this.title, worker: Number(target.value) })) },
      element('label', {}, 'pin to', target), element('button', { class: 'small' }, 'pin'));
    this.#parts.unpin = element('form', { hidden: true, onsubmit: sends(() => deeds.act('unpin', { partition: this.title })) },
      element('button', { class: 'small' }, 'unpin'));
    const weigh = element('form', { hidden: !model.can('partition_weight'), data: { action: 'partition_weight' }, onsubmit: sends(() => deeds.act('partition_weight', { partition: this.title, weight: weight.valueAsNumber })) },
    element('label', {}, 'weight', weight), element('button', { class: 'small' }, 'set'));
    return element('div', { class: 'forms' }, this.#parts.pin, this.#parts.unpin, weigh);
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
