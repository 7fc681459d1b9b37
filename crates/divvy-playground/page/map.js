// The map of partitions: what it shows, and what pointer and keyboard do on it.

import { Arrangement, gap } from './arrangement.js';
import { Cells, MARGIN } from './cells.js';
import { byId, counted, figure, say } from './element.js';
import { Flights } from './flights.js';
import { Legend } from './legend.js';
import { markNamed } from './model.js';

const MOURNED_MS = 6000;
/** What the map leaves free on both sides together. */
const AROUND_X = 24;
const AROUND_Y = 20;

/** Emits `partition` (`{index, byKey}`) and `worker` (a number) when one is picked, and `nothing`. */
export class PartitionMap extends EventTarget {
  kind = 'owner';
  #model;
  #palette;
  #cells;
  #flights;
  #context;
  #arrangement = null;
  #homes = new Int32Array(0);
  #field = byId('cells-focus');
  #tip = byId('cells-tip');
  #cursor = -1;
  #hovered = -1;
  #picked = { partition: -1, worker: null };
  #litMark = null;
  #ghosts = null;
  #happened = false;
  #looks = new Map();
  #living = new Set();
  #diedAt = new Map();
  #columns = 0;
  #due = false;

  constructor(model, palette) {
    super();
    this.#model = model;
    this.#palette = palette;
    this.#cells = new Cells(palette);
    this.#context = byId('cells').getContext('2d');
    this.#flights = new Flights(byId('flights'), this.#cells, palette,
      (index) => spot(this.#arranged(), index), () => this.#redraw());
    this.#flights.marks = (context) => this.#marks(context);
    new Legend(model, palette, this.#cells).addEventListener('light', ({ detail }) => {
      this.#litMark = detail;
      this.#redraw();
    });
    this.#listen();
    model.addEventListener('snapshot', () => this.#load());
    model.addEventListener('delta', ({ detail }) => this.#change(detail));
    palette.addEventListener('change', () => this.#afresh());
    new ResizeObserver(() => this.#resize()).observe(this.#field);
  }

  /** By owner or in order. */
  arrange(kind) {
    this.kind = kind;
    this.#afresh();
  }

  /** What is selected elsewhere: a partition is ringed, a worker's cells are lit. */
  pick({ partition = -1, worker = null }) {
    this.#picked = { partition, worker };
    if (partition >= 0) this.#cursor = partition;
    this.#redraw();
    this.#flights.draw();
  }

  /** What would move, from partition to its new owner, or nothing; `happened` only lights what did. */
  ghost(plan, happened = false) {
    this.#ghosts = plan;
    this.#happened = happened;
    this.#redraw();
    this.#flights.draw();
  }

  focus() {
    this.#field.focus();
  }

  #load() {
    const { owners } = this.#model;
    this.#homes = Int32Array.from(owners);
    this.#living.clear();
    this.#diedAt.clear();
    this.#columns = 0;
    this.#cursor = Math.min(this.#cursor, owners.length - 1);
    this.#afresh();
  }

  #afresh() {
    this.#arrangement = null;
    this.#flights.clear();
    this.#redraw();
  }

  #change({ moved, workers, removed }) {
    const before = this.#arrangement;
    for (const { index, to } of moved) if (to >= 0) this.#homes[index] = to;
    if (removed.length > 0) {
      const gone = new Set(removed);
      this.#homes.forEach((home, index) => gone.has(home) && (this.#homes[index] = -1));
    }
    if (moved.length === 0 && removed.length === 0 && !this.#looksDiffer(workers)) return;
    const real = moved.filter(({ from, to }) => from !== to && to >= 0);
    if (real.length > 0 || removed.length > 0 || this.#tilesDiffer()) this.#arrangement = null;
    for (const { index, to } of real) {
      if (this.kind === 'owner' && before) this.#flights.fly(index, spot(before, index), to);
      else if (this.kind !== 'table') this.#flights.flash(index, to);
    }
    this.#redraw();
  }

  /** Whether what tiles show of workers changed: most of what is told of them does not matter here. */
  #looksDiffer(workers) {
    let differs = false;
    for (const number of workers) {
      const { alive, leader, owned, share, name } = this.#model.workers.get(number) ?? {};
      const look = `${alive} ${leader} ${owned} ${Math.round(share)} ${name}`;
      if (this.#looks.get(number) !== look) differs = true;
      this.#looks.set(number, look);
    }
    return differs || this.#tilesDiffer();
  }

  /** Whether a worker came or went, so that there must be other tiles. */
  #tilesDiffer() {
    if (this.kind !== 'owner') return false;
    if (!this.#arrangement) return true;
    const { byOwner } = this.#arrangement;
    for (const worker of this.#model.workers.values()) {
      if (this.#hasTile(worker) !== byOwner.has(worker.number)) return true;
    }
    return false;
  }

  /** Who died keeps a tile for a while: so one sees what left it before the others close up. */
  #hasTile(worker) {
    const { number, alive, owned } = worker;
    if (alive) this.#living.add(number);
    // Who was gone before anybody looked needs none.
    else if (this.#living.delete(number)) {
      this.#diedAt.set(number, performance.now());
      setTimeout(() => this.#closeUp(), MOURNED_MS + 50);
    }
    return alive || owned > 0 || performance.now() - (this.#diedAt.get(number) ?? -MOURNED_MS) < MOURNED_MS;
  }

  #closeUp() {
    if (!this.#arrangement || !this.#tilesDiffer()) return;
    this.#arrangement = null;
    this.#redraw();
  }

  #arranged() {
    if (!this.#arrangement) {
      const { clientWidth, clientHeight } = this.#field;
      const [width, height] = [Math.max(60, clientWidth - AROUND_X), Math.max(60, clientHeight - AROUND_Y)];
      const kind = this.kind === 'owner' ? 'owner' : 'order';
      const owners = [...this.#model.workers.values()].filter((worker) => this.#hasTile(worker)).map(({ number }) => number);
      this.#arrangement = new Arrangement(this.#model, kind, { homes: this.#homes, owners, columns: this.#columns }, width, height);
      this.#columns = this.#arrangement.columns;
    }
    return this.#arrangement;
  }

  #resize() {
    const scale = devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.#field;
    for (const canvas of [byId('cells'), byId('flights')]) {
      canvas.width = Math.max(1, Math.round((clientWidth - AROUND_X + 2 * MARGIN) * scale));
      canvas.height = Math.max(1, Math.round((clientHeight - AROUND_Y + 2 * MARGIN) * scale));
    }
    this.#afresh();
  }

  /** At most once a frame, however many ask. */
  #redraw() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      if (this.kind === 'table') return;
      const look = { hidden: this.#flights.flying, lit: this.#lit() };
      this.#cells.paint(this.#context, this.#model, this.#arranged(), look);
      this.#flights.draw();
    });
  }

  #lit() {
    const { owners, marks } = this.#model;
    if (this.#litMark !== null) return (index) => marks[index] === this.#litMark;
    if (this.#ghosts) return (index) => this.#ghosts.has(index);
    const { worker } = this.#picked;
    // Who has nothing would leave all in the dark.
    if (worker === null || !(this.#homes.includes(worker) || owners.includes(worker))) return null;
    return (index) => owners[index] === worker || this.#homes[index] === worker;
  }

  /** Ghosts, the picked cell, the hovered one and the cursor. */
  #marks(context) {
    const arrangement = this.#arrangement;
    if (!arrangement || this.kind === 'table') return;
    if (this.#ghosts && !this.#happened) this.#paintGhosts(context, arrangement);
    const ring = (index, colour, width) => {
      if (index < 0 || index >= arrangement.xs.length) return;
      const { x, y, size } = spot(arrangement, index);
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect(x - 2, y - 2, size + 4, size + 4);
    };
    if (this.#hovered >= 0) ring(this.#hovered, this.#palette.named('soft'), 1.5);
    if (this.#picked.partition >= 0) ring(this.#picked.partition, this.#palette.named('ink'), 2.5);
    if (document.activeElement === this.#field) ring(this.#cursor, this.#palette.named('focus'), 2.5);
  }

  /** In each cell that would move the colour of where it would go, and there an empty place for it. */
  #paintGhosts(context, arrangement) {
    const landing = new Map();
    for (const [index, to] of this.#ghosts) {
      const { x, y, size } = spot(arrangement, index);
      const inset = size / 4;
      context.fillStyle = this.#palette.owner(to);
      context.fillRect(x + inset, y + inset, size - 2 * inset, size - 2 * inset);
      const tile = arrangement.byOwner.get(to);
      if (!tile || arrangement.kind !== 'owner') continue;
      const at = (landing.get(to) ?? tile.members.length);
      landing.set(to, at + 1);
      const place = tile.place(at);
      const room = tile.pitch - gap(tile.pitch);
      context.strokeStyle = this.#palette.owner(this.#model.owners[index]);
      context.lineWidth = Math.max(1, Math.min(2, room / 6));
      context.setLineDash([3, 2]);
      context.strokeRect(place.x + 1, place.y + 1, Math.max(1, room - 2), Math.max(1, room - 2));
      context.setLineDash([]);
    }
  }

  #listen() {
    const field = this.#field;
    const at = (event) => {
      const { left, top } = byId('cells').getBoundingClientRect();
      return this.#arranged().at(event.clientX - left - MARGIN, event.clientY - top - MARGIN);
    };
    field.addEventListener('pointermove', (event) => this.#hover(at(event), event));
    field.addEventListener('pointerleave', () => this.#hover({}, null));
    field.addEventListener('click', (event) => {
      const { tile, index } = at(event);
      if (index !== undefined) {
        this.#cursor = index;
        this.#emit('partition', { index, byKey: false });
      } else if (tile && tile.owner !== null && tile.owner >= 0) this.#emit('worker', tile.owner);
      else this.#emit('nothing');
    });
    field.addEventListener('keydown', (event) => this.#key(event));
    field.addEventListener('focus', () => {
      if (this.#cursor < 0) this.#cursor = 0;
      this.#flights.draw();
    });
    field.addEventListener('blur', () => this.#flights.draw());
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.#model.names.length === 0) return;
    const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const last = this.#model.names.length - 1;
    if (event.key in ways) this.#cursor = this.#arranged().next(Math.max(0, this.#cursor), ...ways[event.key]);
    else if (event.key === 'Home') this.#cursor = 0;
    else if (event.key === 'End') this.#cursor = last;
    else if (event.key === 'Enter') this.#emit('partition', { index: this.#cursor, byKey: true });
    else return;
    event.preventDefault();
    say(byId('cells-said'), this.#described(this.#cursor));
    this.#flights.draw();
  }

  #hover({ tile, index }, event) {
    this.#hovered = index ?? -1;
    const worker = tile && tile.owner !== null && index === undefined ? tile.owner : null;
    this.#tip.hidden = index === undefined && (worker === null || worker < 0);
    this.#field.classList.toggle('pointing', !this.#tip.hidden);
    if (!this.#tip.hidden) {
      say(this.#tip, index === undefined ? this.#summed(worker) : this.#described(index));
      const { left, top, width } = this.#field.getBoundingClientRect();
      const x = Math.min(event.clientX - left + 14, width - this.#tip.offsetWidth - 6);
      this.#tip.style.transform = `translate(${Math.max(4, x)}px, ${event.clientY - top + 16}px)`;
    }
    this.#flights.draw();
  }

  #described(index) {
    const { names, owners, marks, tokens, weights } = this.#model;
    return [
      names[index],
      this.#model.nameOf(owners[index]),
      weights && `weight ${figure(weights[index])}`,
      tokens[index] && `token ${tokens[index]}`,
      markNamed(marks[index]),
    ].filter(Boolean).join(' · ');
  }

  #summed(number) {
    const worker = this.#model.workers.get(number);
    const load = this.#model.weights ? `, load ${figure(worker?.load)}` : '';
    return worker ? `${worker.name} · ${counted(worker.owned, 'partition')}${load}, share ${figure(worker.share)}` : '';
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

const spot = (arrangement, index) => ({
  x: arrangement.xs[index],
  y: arrangement.ys[index],
  size: arrangement.sizes[index],
});
