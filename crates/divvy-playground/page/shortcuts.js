// Keys, and the sheet that names them.

import { byId, element } from './element.js';

/** Each is `{keys, about, run}`; a key is what the keyboard says, in lower case. */
export class Shortcuts {
  #list;
  #dialog = byId('sheet');

  constructor(list) {
    this.#list = list;
    document.addEventListener('keydown', (event) => this.#key(event));
    byId('help').addEventListener('click', () => this.open());
    const rows = [...list.filter(({ about }) => about), { keys: ['← ↑ ↓ →'], about: 'from partition to partition, from worker to worker, → to its menu' }, { keys: ['Enter'], about: 'explain what is under the cursor' }];
    this.#dialog.append(
      element('header', { class: 'head' }, element('h2', { id: 'sheet-title' }, 'Keys'), element('div', { class: 'fill' }),
        element('button', { class: 'icon', 'aria-label': 'Close', onclick: () => this.#dialog.close() }, '×')),
      element('dl', {}, rows.map(({ keys, about }) => element('div', {},
        element('dt', {}, keys.map((key) => element('kbd', {}, key === ' ' ? 'space' : key))), element('dd', {}, about)))));
  }

  open() {
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest('input, select, textarea, dialog[open]')) {
      if (event.key === 'Escape' && event.target.matches('input')) event.target.blur();
      return;
    }
    // Space and Enter press what has the focus.
    if (event.key === ' ' && event.target.closest('button, summary, a')) return;
    const found = this.#list.find(({ keys }) => keys.includes(event.key.length === 1 ? event.key.toLowerCase() : event.key));
    if (!found) return;
    event.preventDefault();
    found.run();
  }
}
