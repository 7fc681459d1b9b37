// The pane of details: one worker or one partition at a time.

import { byId, element } from './element.js';
import { Explanation } from './explanation.js';
import { WorkerDetail } from './worker.js';

const TICK_MS = 200;

/** Emits `picked` with `{worker}`, `{partition}` or nothing, and `ghosts` with `{plan, happened}` or nothing. */
export class Pane extends EventTarget {
  /** What is shown: `{kind, key}`. */
  shown = null;
  #context;
  #detail = null;
  #root = byId('pane');
  #from = null;

  constructor(context) {
    super();
    this.#context = context;
    context.model.addEventListener('snapshot', ({ detail }) => this.#load(detail.again));
    context.model.addEventListener('delta', ({ detail }) => this.#detail?.follow(detail));
    setInterval(() => this.#detail?.tick(), TICK_MS);
  }

  /** Shows a worker; who came by the keyboard goes on reading there. */
  worker(number, byKey = false) {
    if (this.shown?.kind === 'worker' && this.shown.key === number) return byKey && this.#root.focus();
    const detail = new WorkerDetail(this.#context, number);
    detail.addEventListener('partition', (event) => this.partition(event.detail));
    this.#open('worker', number, detail, this.#context.palette.owner(number), byKey);
    this.#emit('picked', { worker: number });
  }

  partition(name, byKey = false) {
    if (this.shown?.kind === 'partition' && this.shown.key === name) return byKey && this.#root.focus();
    const detail = new Explanation(this.#context, name);
    detail.addEventListener('worker', (event) => this.worker(event.detail));
    const index = this.#context.model.indexOf(name);
    this.#open('partition', name, detail, this.#context.palette.owner(this.#context.model.owners[index] ?? -1), byKey);
    this.#emit('picked', { partition: index });
  }

  /** The plan for the death of the worker that is shown. */
  whatIf() {
    this.#detail?.whatIf?.();
  }

  close() {
    if (!this.shown) return;
    const held = this.#root.contains(document.activeElement);
    this.shown = null;
    this.#detail = null;
    this.#root.hidden = true;
    document.body.classList.remove('detailed');
    this.#emit('ghosts', null);
    this.#emit('picked', {});
    if (held) (this.#from?.isConnected && this.#from !== document.body ? this.#from : byId('cells-focus')).focus();
  }

  /** In the same world there may be other partitions, with other indices. */
  #load(again) {
    if (!this.shown) return;
    const { kind, key } = this.shown;
    const index = this.#context.model.indexOf(key);
    const there = kind === 'worker' ? this.#context.model.workers.has(key) : index !== undefined;
    if (!again || !there) this.close();
    else this.#emit('picked', kind === 'worker' ? { worker: key } : { partition: index });
  }

  #open(kind, key, detail, colour, byKey) {
    const held = this.#root.contains(document.activeElement);
    if (!held) this.#from = document.activeElement;
    this.#emit('ghosts', null);
    this.shown = { kind, key };
    this.#detail = detail;
    detail.addEventListener('ghosts', (event) => this.#emit('ghosts', event.detail));
    const close = element('button', { class: 'icon', 'aria-label': 'Close', title: 'Close (Esc)', onclick: () => this.close() }, '×');
    this.#root.replaceChildren(
      element('header', { class: 'head' }, element('i', { class: 'swatch', vars: { owner: colour } }),
        element('h2', { title: detail.title }, detail.title), element('span', { class: 'quiet' }, kind), element('div', { class: 'fill' }), close),
      detail.root);
    this.#root.hidden = false;
    this.#root.scrollTop = 0;
    document.body.classList.add('detailed');
    if (held || byKey) this.#root.focus({ preventScroll: true });
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
