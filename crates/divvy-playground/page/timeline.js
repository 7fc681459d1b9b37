// The timeline: what happened, newest first, with filter, search and export.

import { byId, counted, element, instant, say } from './element.js';
import { toast } from './deeds.js';

const ROWS = 250;
/** As many as the server keeps: it begins with the oldest. */
const KEPT = 10_000;
const SPOKEN_EVERY_MS = 2500;
/** So many partitions that start at about the same time are one line. */
const GROUPED_FROM = 4;
const GROUPED_WITHIN_MS = 1000;

export const KINDS = ['moved', 'started', 'stopped', 'joined', 'left', 'killed', 'paused', 'resumed', 'leader', 'store', 'setting', 'wish', 'violation', 'goal', 'note', 'error'];
/** What is said aloud: not every move. */
const SPOKEN = new Set(['joined', 'left', 'killed', 'paused', 'resumed', 'leader', 'store', 'violation', 'goal', 'error']);
const FIELDS = ['number', 'at_ms', 'kind', 'worker', 'partition', 'from', 'to', 'token', 'cause', 'text'];

/** Emits `partition` (`{name, byKey}`) and `worker` (`{number, byKey}`) when an event of one is picked. */
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
  /** Groups that are open, by the number of their oldest event. */
  #unfolded = new Set();

  constructor(model, api) {
    super();
    this.#model = model;
    this.#api = api;
    this.#makeKinds();
    model.addEventListener('snapshot', ({ detail }) => this.#load(detail.again));
    model.addEventListener('delta', ({ detail }) => {
      this.#take(detail.events);
      // A delta has the last events only: where there were more, the others are asked for.
      if (detail.missed) this.#load(true, detail.missed.after);
    });
    this.#search.addEventListener('input', () => this.#show());
    this.#newer.addEventListener('click', () => {
      this.#list.scrollTop = 0;
      this.#show();
    });
    this.#list.addEventListener('scroll', () => this.#list.scrollTop < 4 && this.#held > 0 && this.#show());
    this.#list.addEventListener('click', (event) => this.#click(event));
    this.#list.addEventListener('keydown', (event) => this.#key(event));
    this.#list.addEventListener('focusin', (event) => this.#rove(event.target));
    byId('events-export').addEventListener('click', (event) => {
      const format = event.target.dataset?.export;
      if (format) this.#export(format);
    });
  }

  focus() {
    this.#search.focus();
  }

  async #load(again, from) {
    if (from === undefined) this.#show();
    if (!again) this.#unfolded.clear();
    const { run } = this.#model;
    const after = from ?? (again ? this.#model.events.at(-1)?.number ?? 0 : 0);
    try {
      const { events } = await this.#api.get(`timeline?after=${after}&limit=${KEPT}`);
      if (run !== this.#model.run) return;
      this.#model.merge(events);
      if (!this.#isRead) this.#show();
      // Deltas that came before the answer may have begun after it ends. What the server no longer
      // has stays missing.
      const { gap } = this.#model;
      if (gap !== null && gap !== after) await this.#load(true, gap);
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
    if (this.#isRead) {
      this.#held += fitting.length;
      this.#newer.hidden = false;
      say(this.#newer, `↑ ${counted(this.#held, 'newer event')}`);
      return;
    }
    if (this.#held > 0) return this.#show();
    this.#pending.push(...fitting);
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      // Of what is grouped, more may belong to the group that is there.
      if (this.#pending.some(groups)) return this.#show();
      const rows = this.#pending.slice(-ROWS).reverse().map((event) => this.#row(event));
      this.#pending = [];
      this.#list.querySelector('.none')?.remove();
      this.#list.prepend(...rows);
      while (this.#list.children.length > ROWS) this.#list.lastChild.remove();
      this.#rove();
    });
  }

  /** Who reads further down, or goes through the rows by the keyboard, is not pushed about. */
  get #isRead() {
    const { activeElement } = document;
    return this.#list.scrollTop > 4 ||
      (activeElement !== this.#list && this.#list.contains(activeElement) && activeElement.matches(':focus-visible'));
  }

  #show() {
    this.#held = 0;
    this.#pending = [];
    this.#newer.hidden = true;
    const { events } = this.#model;
    const rows = [];
    let at = events.length - 1;
    while (at >= 0 && rows.length < ROWS) {
      const group = this.#group(at);
      if (group.fitting.length >= GROUPED_FROM) rows.push(...this.#folded(group.fitting));
      else rows.push(...group.fitting.map((event) => this.#row(event)));
      at = group.next;
    }
    const none = element('li', { class: 'none' }, events.length ? 'No event fits the filter.' : 'Nothing has happened yet.');
    this.#list.replaceChildren(...(rows.length ? rows : [none]));
    this.#rove();
  }

  /** The events from this one back that belong together, as far as they fit the filter; one alone if it belongs to none. */
  #group(at) {
    const { events } = this.#model;
    const first = events[at];
    const fitting = [];
    let next = at;
    // Who searches wants to see what was found; and events of an earlier world have times of their own.
    const near = ({ at_ms }) => first.at_ms >= at_ms && first.at_ms - at_ms < GROUPED_WITHIN_MS;
    const wanted = groups(first) && this.#search.value.trim() === '';
    do {
      if (this.#fits(events[next])) fitting.push(events[next]);
      next -= 1;
    } while (wanted && next >= 0 && groups(events[next]) && near(events[next]));
    return { fitting, next };
  }

  /** One line for all of them, and if it is open each of them below it. */
  #folded(events) {
    const key = events.at(-1).number;
    const open = this.#unfolded.has(key);
    const line = element('li', { class: 'event started fold', data: { group: key } },
      element('button', { tabindex: -1, 'aria-expanded': String(open) },
        element('time', {}, instant(events.at(-1).at_ms)), element('b', {}, 'started'),
        element('span', {}, `${counted(events.length, 'partition')} started: nobody had them before`)));
    return open ? [line, ...events.slice(0, 2 * ROWS).map((event) => this.#row(event))] : [line];
  }

  #fits(event) {
    if (this.#off.has(event.kind)) return false;
    const words = this.#search.value.trim().toLowerCase();
    return words === '' || `${event.kind} ${event.text} ${event.cause ?? ''}`.toLowerCase().includes(words);
  }

  #row(event) {
    const picks = (event.partition ?? event.worker ?? null) !== null;
    const failed = event.kind === 'goal' && event.text.startsWith('failed') ? ' failed' : '';
    return element('li', {
      class: `event ${event.kind}${failed}${picks ? ' picks' : ''}`,
      data: { partition: event.partition ?? '', worker: event.worker ?? '' },
    }, element(picks ? 'button' : 'div', { tabindex: picks ? -1 : null },
      element('time', {}, instant(event.at_ms)), element('b', {}, event.kind), element('span', {}, event.text)));
  }

  #click(event) {
    const row = event.target.closest('.event');
    if (!row) return;
    const byKey = event.detail === 0;
    const { partition, worker, group } = row.dataset;
    if (group) this.#unfold(Number(group));
    else if (partition) this.dispatchEvent(new CustomEvent('partition', { detail: { name: partition, byKey } }));
    else if (worker !== '') this.dispatchEvent(new CustomEvent('worker', { detail: { number: Number(worker), byKey } }));
  }

  #unfold(key) {
    if (!this.#unfolded.delete(key)) this.#unfolded.add(key);
    const { scrollTop } = this.#list;
    this.#show();
    this.#list.scrollTop = scrollTop;
    this.#list.querySelector(`[data-group="${key}"] button`)?.focus({ preventScroll: true });
  }

  /** Arrows go from row to row; Tab leaves the list. */
  #key(event) {
    const rows = [...this.#list.querySelectorAll('button')];
    const at = rows.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined || !rows[to]) return;
    event.preventDefault();
    rows[to].focus();
  }

  /** One row is where Tab comes to: the last that had the focus, or the newest. */
  #rove(row) {
    const before = this.#list.querySelector('button[tabindex="0"]');
    const now = row?.matches('button') ? row : before ?? this.#list.querySelector('button');
    if (before && before !== now) before.tabIndex = -1;
    if (now) now.tabIndex = 0;
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

/** Whether an event is one of many alike when a world begins. */
const groups = ({ kind, cause }) => kind === 'started' && cause === 'new';

/** A field of CSV, where a spreadsheet takes nothing for a formula. */
function quoted(value) {
  const plain = value === null || value === undefined ? '' : String(value);
  const text = typeof value === 'string' && /^[=+\-@]/.test(plain) ? `'${plain}` : plain;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
