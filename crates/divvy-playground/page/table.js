// Partitions as a table: the same as the map shows, for who reads rather than looks.

import { byId, counted, element, figure, say } from './element.js';
import { markNamed } from './model.js';

const PAGE = 200;
const SHOWN_EVERY_MS = 500;

/** Emits `partition` (`{name, byKey}`). */
export class PartitionTable extends EventTarget {
  #model;
  #root = byId('table');
  #search = element('input', { type: 'search', placeholder: 'partition, owner or mark', 'aria-label': 'Search partitions' });
  #body = element('tbody', {});
  #said = element('span', { class: 'quiet' });
  #from = 0;
  #shownAt = 0;

  constructor(model) {
    super();
    this.#model = model;
    this.#search.addEventListener('input', () => this.#turn(0));
    const head = ['partition', 'owner', 'weight', 'token', 'mark'].map((text) => element('th', { scope: 'col' }, text));
    this.#root.append(
      element('div', { class: 'row' }, this.#search, this.#said,
        element('button', { class: 'small', onclick: () => this.#turn(this.#from - PAGE) }, 'earlier'),
        element('button', { class: 'small', onclick: () => this.#turn(this.#from + PAGE) }, 'later')),
      element('div', { class: 'scroll', tabindex: 0, 'aria-label': 'Table of partitions' },
        element('table', {}, element('thead', {}, element('tr', {}, head)), this.#body)));
    for (const name of ['snapshot', 'delta']) model.addEventListener(name, () => this.#follow());
  }

  show(shown) {
    this.#root.hidden = !shown;
    if (shown) this.#fill();
  }

  #follow() {
    const now = performance.now();
    if (this.#root.hidden || now - this.#shownAt < SHOWN_EVERY_MS) return;
    // A row that has the focus stays.
    if (!this.#body.contains(document.activeElement)) this.#fill();
  }

  #turn(from) {
    this.#from = from;
    this.#fill();
  }

  #fill() {
    this.#shownAt = performance.now();
    const { names, owners, marks, tokens, weights } = this.#model;
    const words = this.#search.value.trim().toLowerCase();
    const fitting = [];
    names.forEach((name, index) => {
      const text = words && `${name} ${this.#model.nameOf(owners[index])} ${markNamed(marks[index]) ?? ''}`.toLowerCase();
      if (!words || text.includes(words)) fitting.push(index);
    });
    this.#from = Math.max(0, Math.min(this.#from, Math.floor(Math.max(0, fitting.length - 1) / PAGE) * PAGE));
    const shown = fitting.slice(this.#from, this.#from + PAGE);
    say(this.#said, fitting.length > PAGE ? `${this.#from + 1} to ${this.#from + shown.length} of ${fitting.length}` : counted(fitting.length, 'partition'));
    const cell = (text) => element('td', { title: text }, text);
    const pick = (name) => (event) => this.dispatchEvent(new CustomEvent('partition', { detail: { name, byKey: event.detail === 0 } }));
    this.#body.replaceChildren(...shown.map((index) => element('tr', {},
      element('td', { title: names[index] }, element('button', { class: 'link', onclick: pick(names[index]) }, names[index])),
      cell(this.#model.nameOf(owners[index])),
      cell(figure(weights?.[index] ?? 1)),
      cell(tokens[index]),
      cell(markNamed(marks[index]) ?? ''))));
  }
}
