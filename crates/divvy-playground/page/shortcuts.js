// Keys, and the sheet that names them.

import { byId, element } from './element.js';

/** Each is `{keys, about, run}`, and `can` where it is not always there; a key is what the keyboard says, in lower case. */
export class Shortcuts {
  #list;
  #dialog = byId('sheet');
  #rows = [];

  constructor(list) {
    this.#list = list;
    document.addEventListener('keydown', (event) => this.#key(event));
    byId('help').addEventListener('click', () => this.open());
    const rows = [...list.filter(({ about }) => about), { keys: ['← ↑ ↓ →'], about: 'from partition to partition, from worker to worker, → to its menu' }, { keys: ['Enter'], about: 'explain what is under the cursor' }];
    this.#rows = rows.map(({ keys, about, can }) => ({ can, row: element('div', {},
      element('dt', {}, keys.map((key) => element('kbd', {}, key === ' ' ? 'space' : key))), element('dd', {}, about)) }));
    this.#dialog.append(
      element('header', { class: 'head' }, element('h2', { id: 'sheet-title' }, 'Keys'), element('div', { class: 'fill' }),
        element('button', { class: 'small', id: 'help-intro' }, 'Introduction'),
        element('button', { class: 'icon', 'aria-label': 'Close', onclick: () => this.#dialog.close() }, '×')),
      element('dl', {}, this.#rows.map(({ row }) => row)));
  }

  open() {
    if (this.#dialog.open) return;
    for (const { can, row } of this.#rows) row.hidden = can?.() === false;
    this.#dialog.showModal();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const leaves = event.key === 'Escape' && event.target.closest('#pane');
    if (!leaves && event.target.closest('input, select, textarea, dialog[open]')) {
      if (event.key === 'Escape' && event.target.matches('input')) event.target.blur();
      return;
    }
    // Space and Enter press what has the focus.
    if (event.key === ' ' && event.target.closest('button, summary, a')) return;
    const found = this.#list.find(({ keys }) => keys.includes(event.key.length === 1 ? event.key.toLowerCase() : event.key));
    if (!found || found.can?.() === false) return;
    event.preventDefault();
    found.run();
  }
}
