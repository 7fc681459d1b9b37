// Legends: what the marks on the map mean and how many there are, and how to read a worker.

import { byId, drawing, element, figure, say } from './element.js';
import { MARKS } from './model.js';

/** The legend of the map. Emits `light` (a mark, or nothing) when one alone is to be seen. */
export class Legend extends EventTarget {
  #model;
  #palette;
  #cells;
  #entries = [];
  #lit = null;
  #weighed = null;
  #weights = element('li', { class: 'reading', hidden: true });

  constructor(model, palette, cells) {
    super();
    this.#model = model;
    this.#palette = palette;
    this.#cells = cells;
    const list = byId('legend');
    for (const { mark, name, about } of MARKS) {
      const canvas = element('canvas', { width: 28, height: 28, 'aria-hidden': 'true' });
      const number = element('b', {});
      const button = element('button', { title: about, 'aria-pressed': 'false', onclick: () => this.#light(this.#lit === mark ? null : mark) },
        canvas, number, name);
      list.append(element('li', {}, button));
      this.#entries.push({ mark, canvas, number, button });
    }
    list.append(
      element('li', { class: 'reading', title: 'A worker has less than its share: so much more would be its own' },
        drawing('svg', { viewBox: '0 0 14 14', 'aria-hidden': 'true' }, drawing('rect', { class: 'place', x: 1, y: 1, width: 12, height: 12 })), 'free place, up to its share'),
      this.#weights);
    for (const name of ['snapshot', 'delta']) model.addEventListener(name, () => this.#count());
    palette.addEventListener('change', () => this.#paint());
    this.#paint();
    readWorkers();
  }

  #light(mark) {
    this.#lit = mark;
    for (const each of this.#entries) each.button.setAttribute('aria-pressed', String(each.mark === mark));
    this.dispatchEvent(new CustomEvent('light', { detail: mark }));
  }

  #count() {
    const counts = this.#model.markCounts();
    for (const { mark, number, button } of this.#entries) {
      say(number, counts[mark] === 0 ? '' : String(counts[mark]));
      button.classList.toggle('none', counts[mark] === 0);
    }
    say(byId('cells-count'), String(this.#model.names.length));
    this.#weigh();
  }

  /** Cells differ in size only where partitions differ in weight. */
  #weigh() {
    const { weights } = this.#model;
    this.#weights.hidden = !weights;
    if (!weights || this.#weighed === weights) return;
    this.#weighed = weights;
    let [least, most] = [Infinity, 0];
    for (const weight of weights) [least, most] = [Math.min(least, weight), Math.max(most, weight)];
    this.#weights.title = 'A larger cell is a heavier partition';
    this.#weights.replaceChildren(
      drawing('svg', { viewBox: '0 0 24 14', class: 'sizes', 'aria-hidden': 'true' },
        drawing('rect', { x: 0, y: 3, width: 8, height: 8, rx: 1 }), drawing('rect', { x: 11, y: 0.5, width: 13, height: 13, rx: 1 })),
      `weight ${figure(least)} to ${figure(most)}`);
  }

  #paint() {
    const ink = this.#palette.named('ink');
    for (const { mark, canvas } of this.#entries) {
      const context = canvas.getContext('2d');
      context.clearRect(0, 0, 28, 28);
      context.globalAlpha = 0.42;
      context.fillStyle = this.#palette.named('faint');
      if (mark !== 8) this.#cells.body(context, 2, 2, 24);
      context.globalAlpha = 1;
      context.strokeStyle = mark === 8 ? this.#palette.named('bad') : ink;
      context.fillStyle = ink;
      context.lineWidth = 2;
      if (mark === 8) context.strokeRect(3, 3, 22, 22);
      else this.#cells.mark(context, mark, 2, 2, 24);
    }
  }
}

/** What ring, bar and ticks of a card are. */
function readWorkers() {
  const sample = (kind, ...shapes) => drawing('svg', { viewBox: '0 0 14 14', class: kind, 'aria-hidden': 'true' }, shapes);
  const entries = [
    ['how much of its lease is left: a renewal fills it', 'lease', sample('lease',
      drawing('circle', { class: 'track', cx: 7, cy: 7, r: 5.5 }),
      drawing('circle', { class: 'ring', cx: 7, cy: 7, r: 5.5, pathLength: 1 }))],
    ['what its partitions weigh together', 'load', sample('load', drawing('rect', { x: 0, y: 4, width: 14, height: 6, rx: 1.5 }))],
    ['what it should have, by its weight', 'share', sample('share', drawing('rect', { x: 6, y: 0, width: 2.5, height: 14 }))],
    ['what each would have if all were alike', 'mean', sample('mean', drawing('rect', { x: 5.5, y: 1.5, width: 3, height: 11 }))],
    ['decides for all, in leader mode', 'leads', sample('star-sample', drawing('path', { d: 'M7 .8l1.9 4 4.4.5-3.2 3 .8 4.4L7 10.5l-3.9 2.2.8-4.4-3.2-3 4.4-.5z' }))],
  ];
  byId('workers-legend').append(...entries.map(([about, name, icon]) => element('li', { title: about }, icon, name)));
}
