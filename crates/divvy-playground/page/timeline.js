// The timeline: what happened, newest first, with filter, search and export.

import { byId, counted, element, instant, say } from './element.js';
import { toast } from './deeds.js';

const ROWS = 250;
/** As many as the server keeps: it begins with the oldest. */
const KEPT = 10_000;
const SPOKEN_EVERY_MS = 2500;

export const KINDS = ['moved', 'started', 'stopped', 'joined', 'left', 'killed', 'paused', 'resumed', 'leader', 'store', 'setting', 'wish', 'violation', 'goal', 'note', 'error'];
/** What is said aloud: not every move. */
const SPOKEN = new Set(['joined', 'left', 'killed', 'paused', 'resumed', 'leader', 'store', 'violation', 'goal', 'error']);
const FIELDS = ['number', 'at_ms', 'kind', 'worker', 'partition', 'from', 'to', 'token', 'cause', 'text'];

/** Emits `partition` (a name) and `worker` (a number) when an event of one is picked. */
export class Timeline extends EventTarget {
  #model;
  #api;
  #list = byId('events');
  #search = byId('events-search');
  #newer = byId('events-newer');
  #off = new Set();
  #held = 0;
  #toSay = [];
  #spokenAt = 0;
  #pending = [];
  #due = false;

  constructor(model, api) {
    super();
    this.#model = model;
    this.#api = api;
    this.#makeKinds();
    model.addEventListener('snapshot', ({ detail }) => this.#load(detail.again));
    model.addEventListener('delta', ({ detail }) => this.#take(detail.events));
    this.#search.addEventListener('input', () => this.#show());
    this.#newer.addEventListener('click', () => {
      this.#list.scrollTop = 0;
      this.#show();
    });
    this.#list.addEventListener('scroll', () => this.#list.scrollTop < 4 && this.#held > 0 && this.#show());
    this.#list.addEventListener('click', (event) => this.#click(event));
    byId('events-export').addEventListener('click', (event) => {
      const format = event.target.dataset?.export;
      if (format) this.#export(format);
    });
  }

  focus() {
    this.#search.focus();
  }

  async #load(again) {
    this.#show();
    const { run } = this.#model;
    const after = again ? this.#model.events.at(-1)?.number ?? 0 : 0;
    try {
      const { events } = await this.#api.get(`timeline?after=${after}&limit=${KEPT}`);
      if (run !== this.#model.run) return;
      this.#model.merge(events);
      this.#show();
    } catch {
      // The stream says by itself that the server is gone; what comes after is shown anyway.
    }
  }

  #take(events) {
    if (events.length === 0) return;
    this.#toSay.push(...events.filter(({ kind }) => SPOKEN.has(kind)));
    this.#speak();
    const fitting = events.filter((event) => this.#fits(event));
    if (fitting.length === 0) return;
    // Who reads further down is not pushed about.
    if (this.#list.scrollTop > 4) {
      this.#held += fitting.length;
      this.#newer.hidden = false;
      say(this.#newer, `↑ ${counted(this.#held, 'newer event')}`);
      return;
    }
    this.#pending.push(...fitting);
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      const rows = this.#pending.slice(-ROWS).reverse().map((event) => this.#row(event));
      this.#pending = [];
      this.#list.prepend(...rows);
      while (this.#list.children.length > ROWS) this.#list.lastChild.remove();
    });
  }

  #show() {
    this.#held = 0;
    this.#pending = [];
    this.#newer.hidden = true;
    const rows = [];
    for (let at = this.#model.events.length - 1; at >= 0 && rows.length < ROWS; at -= 1) {
      const event = this.#model.events[at];
      if (this.#fits(event)) rows.push(this.#row(event));
    }
    const none = element('li', { class: 'none' }, this.#model.events.length ? 'No event fits the filter.' : 'Nothing has happened yet.');
    this.#list.replaceChildren(...(rows.length ? rows : [none]));
  }

  #fits(event) {
    if (this.#off.has(event.kind)) return false;
    const words = this.#search.value.trim().toLowerCase();
    return words === '' || `${event.kind} ${event.text} ${event.cause ?? ''}`.toLowerCase().includes(words);
  }

  #row(event) {
    const picks = event.partition ?? event.worker;
    return element('li', {
      class: `event ${event.kind}${picks === null || picks === undefined ? '' : ' picks'}`,
      data: { partition: event.partition ?? '', worker: event.worker ?? '' },
    }, element('time', {}, instant(event.at_ms)), element('b', {}, event.kind), element('span', {}, event.text));
  }

  #click(event) {
    const row = event.target.closest('.event');
    if (!row) return;
    const { partition, worker } = row.dataset;
    if (partition) this.dispatchEvent(new CustomEvent('partition', { detail: partition }));
    else if (worker !== '') this.dispatchEvent(new CustomEvent('worker', { detail: Number(worker) }));
  }

  #makeKinds() {
    const sheet = byId('events-kinds').querySelector('.sheet');
    const boxes = KINDS.map((kind) => element('input', { type: 'checkbox', checked: true, onchange: (event) => {
      if (event.target.checked) this.#off.delete(kind);
      else this.#off.add(kind);
      this.#filtered();
    } }));
    const all = (on) => () => {
      boxes.forEach((box, at) => {
        box.checked = on;
        if (on) this.#off.delete(KINDS[at]);
        else this.#off.add(KINDS[at]);
      });
      this.#filtered();
    };
    sheet.append(element('div', { class: 'both' },
      element('button', { class: 'small', onclick: all(true) }, 'all'),
      element('button', { class: 'small', onclick: all(false) }, 'none')),
    ...KINDS.map((kind, at) => element('label', { class: `event ${kind}` }, boxes[at], element('b', {}, kind))));
  }

  #filtered() {
    const shown = KINDS.length - this.#off.size;
    say(byId('events-kinds').querySelector('summary'), this.#off.size === 0 ? 'kinds' : `${shown} of ${KINDS.length}`);
    this.#show();
  }

  /** What matters, politely: gathered, and not more often than one can listen. */
  #speak() {
    const now = performance.now();
    if (this.#toSay.length === 0 || now - this.#spokenAt < SPOKEN_EVERY_MS) {
      if (this.#toSay.length > 0) setTimeout(() => this.#speak(), SPOKEN_EVERY_MS);
      return;
    }
    this.#spokenAt = now;
    const said = this.#toSay.splice(0);
    const text = said.slice(0, 3).map(({ text: words }) => words).join('. ');
    say(byId('said'), said.length > 3 ? `${text}. And ${counted(said.length - 3, 'more event')}.` : text);
  }

  /** All that the server keeps and the filter lets through. */
  async #export(format) {
    byId('events-export').open = false;
    try {
      const { events } = await this.#api.get(`timeline?after=0&limit=${KEPT}`);
      const fitting = events.filter((event) => this.#fits(event));
      const lines = format === 'csv'
        ? [FIELDS.join(','), ...fitting.map((event) => FIELDS.map((field) => quoted(event[field])).join(','))]
        : fitting.map((event) => JSON.stringify(event));
      const type = format === 'csv' ? 'text/csv' : 'application/x-ndjson';
      const address = URL.createObjectURL(new Blob([lines.join('\n'), '\n'], { type }));
      element('a', { href: address, download: `divvy-events.${format}` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
      toast(`${counted(fitting.length, 'event')} exported`);
    } catch (error) {
      toast(error.message, 'bad');
    }
  }
}

/** A field of CSV, where a spreadsheet takes nothing for a formula. */
function quoted(value) {
  const plain = value === null || value === undefined ? '' : String(value);
  const text = typeof value === 'string' && /^[=+\-@]/.test(plain) ? `'${plain}` : plain;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
