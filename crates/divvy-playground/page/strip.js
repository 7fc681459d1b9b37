// The summary in numbers.

import { byId, count, duration, element, figure, say } from './element.js';

const FIELDS = [
  ['owned', 'owned', 'partitions that somebody owns'],
  ['moving', 'moving', 'asked back, or being started'],
  ['misplaced', 'misplaced', 'not where they should be'],
  ['two', 'two owners', 'at this moment'],
  ['imbalance', 'imbalance', 'the greatest load against the mean'],
  ['range', 'least – most', 'loads of workers'],
  ['moves', 'moves so far', 'since the world began'],
];

/** The strip below the toolbar. */
export class Strip {
  #model;
  #state = element('div', { class: 'state' }, element('i'), element('b'), element('span'));
  #values = {};

  constructor(model) {
    this.#model = model;
    const list = element('dl', {});
    for (const [key, label, about] of FIELDS) {
      this.#values[key] = element('dd', {});
      list.append(element('div', { title: about, class: key }, element('dt', {}, label), this.#values[key]));
    }
    byId('strip').append(this.#state, list);
    model.addEventListener('snapshot', () => this.#show());
    model.addEventListener('delta', () => this.#show());
  }

  #show() {
    const { summary } = this.#model;
    if (!summary) return;
    const [, word, since] = this.#state.children;
    const broken = summary.owned < summary.partitions;
    this.#state.className = `state ${summary.converged ? 'good' : broken ? 'bad' : 'busy'}`;
    say(word, summary.converged ? 'converged' : broken ? `${count(summary.partitions - summary.owned)} without owner` : 'settling');
    const { running } = this.#model.clock;
    say(since, this.#model.source === 'observed' && this.#model.store.state === 'down' ? 'as last seen' : running ? (summary.converged ? `for ${duration(summary.converged_for_ms)}` : '') : 'time is held');
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
}
