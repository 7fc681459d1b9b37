// The introduction: what this is, and what to try first. Who has read it is not shown it again.

import { byId, element } from './element.js';

const KEPT_AS = 'divvy.introduced';

/** Emits `scenarios` and `worker` (a number) for what is tried. */
export class Intro extends EventTarget {
  #model;
  #deeds;
  #root = byId('intro');
  #away = wasRead();
  #shown = '';

  constructor(model, deeds) {
    super();
    this.#model = model;
    this.#deeds = deeds;
    for (const name of ['snapshot', 'delta']) model.addEventListener(name, () => this.#show());
  }

  /** Shows it once more. */
  open() {
    this.#away = false;
    this.#shown = '';
    this.#show();
    this.#root.querySelector('button')?.focus();
  }

  close() {
    this.#away = true;
    this.#root.hidden = true;
    try {
      localStorage.setItem(KEPT_AS, 'yes');
    } catch {
      // Then it is shown again next time.
    }
  }

  #show() {
    const { run, source, mode, actions } = this.#model;
    const key = `${run} ${mode} ${[...actions].join()}`;
    if (this.#away || this.#shown === key) return;
    this.#shown = key;
    const live = source === 'observed';
    const where = source === 'store' ? 'with a real store and in real time' : 'in simulated time, and every step of it is checked';
    const words = element('p', {}, element('b', {}, live ? 'A live cluster. ' : 'A cluster to break. '),
      'Workers share partitions: each square is a partition, and its colour is the worker that owns it. ',
      live ? 'Nothing here changes it. Pick a worker or a square to see why it is where it is.' : `It runs what runs in production, ${where}.`);
    const tries = element('div', { class: 'row', hidden: live }, element('span', { class: 'quiet' }, 'Try:'), this.#tries());
    this.#root.replaceChildren(words, tries,
      element('button', { class: 'small', id: 'intro-close', onclick: () => this.close() }, 'Got it'));
    this.#root.hidden = false;
  }

  #tries() {
    const may = (action, label, about, run) => (this.#model.can(action)
      ? element('button', { class: 'small', title: about, onclick: run }, label) : null);
    return [
      may('kill', 'kill a worker', 'as kill -9 does: the others take over what it had', () => {
        const worker = this.#anyone();
        if (worker) this.#deeds.act('kill', { worker: worker.number });
      }),
      element('button', { class: 'small', title: 'shows the plan; nothing is changed', onclick: () => {
        const worker = this.#anyone();
        if (worker) this.dispatchEvent(new CustomEvent('worker', { detail: worker.number }));
      } }, 'what if one dies'),
      may('add', 'add a worker', 'it gets its share', () => this.#deeds.act('add', { count: 1 })),
      may('reset', 'a scenario', 'a story with a goal', () => this.dispatchEvent(new Event('scenarios'))),
    ].filter(Boolean);
  }

  /** The one with the most: there one sees the most. */
  #anyone() {
    const alive = [...this.#model.workers.values()].filter((worker) => worker.alive && !worker.leader);
    return alive.sort((a, b) => b.owned - a.owned)[0];
  }
}

function wasRead() {
  try {
    return localStorage.getItem(KEPT_AS) !== null;
  } catch {
    return false; // A browser that keeps nothing is told each time.
  }
}
