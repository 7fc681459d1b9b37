// The cluster as the page knows it: a snapshot, kept up to date by deltas.

import { beganAt } from './element.js';

const HISTORY = 600;
const EVENTS = 3000;

/** What the numbers of marks mean, in the order of their importance to a reader. */
export const MARKS = [
  { mark: 9, name: 'two owners', about: 'two workers act on it at once' },
  { mark: 8, name: 'no owner', about: 'nobody has it' },
  { mark: 5, name: 'cut off', about: 'its owner is paused or cut off from the store' },
  { mark: 1, name: 'moving', about: 'asked back, or being started' },
  { mark: 2, name: 'cooldown', about: 'it moved a short while ago, and stays until the cooldown is over' },
  { mark: 3, name: 'minimum runtime', about: 'it has not run for long enough to be moved' },
  { mark: 4, name: 'cap', about: 'as many move already as may move at once' },
  { mark: 10, name: 'window', about: 'the leader waits for more changes before it moves anything' },
  { mark: 6, name: 'backoff', about: 'starting it failed, and is tried again later' },
  { mark: 7, name: 'not the best', about: 'held by another than the one who should have it' },
];

export const markNamed = (mark) => MARKS.find((each) => each.mark === mark)?.name ?? null;

/**
 * The model emits `snapshot` (everything is new) and `delta` with what changed:
 * `{moved: [{index, from, to, mark}], workers: [number], removed, events, point, …}`.
 */
export class Model extends EventTarget {
  /** Undefined until the first snapshot came. */
  run;
  sequence = 0;
  source = 'simulated';
  mode = 'leader';
  actions = new Set();
  clock = { now_ms: 0, running: false, speed: 1 };
  settings = {};
  choices = {};
  store = { state: 'up' };
  /** By number, in order of numbers. */
  workers = new Map();
  names = [];
  weights = null;
  owners = new Int32Array(0);
  marks = new Uint8Array(0);
  tokens = [];
  summary = null;
  invariants = { checked: 0, violations: [] };
  scenario = null;
  history = [];
  events = [];
  #indices = new Map();
  #clockRead = 0;

  load(snapshot) {
    const again = this.run === snapshot.run;
    this.run = snapshot.run;
    this.sequence = snapshot.sequence;
    for (const field of ['source', 'mode', 'settings', 'choices', 'store', 'summary', 'invariants']) {
      this[field] = snapshot[field];
    }
    this.scenario = snapshot.scenario ?? null;
    this.actions = new Set(snapshot.actions);
    this.#setClock(snapshot.clock);
    this.workers = new Map(snapshot.workers.map((worker) => [worker.number, this.#read(worker)]));
    const { names, weights, owners, tokens, marks } = snapshot.partitions;
    this.names = names;
    this.weights = weights;
    this.owners = Int32Array.from(owners);
    this.marks = Uint8Array.from(marks);
    this.tokens = tokens;
    this.#indices = new Map(names.map((name, index) => [name, index]));
    this.history = snapshot.history.slice(-HISTORY);
    if (!again) this.events = [];
    this.#emit('snapshot', { again });
  }

  apply(delta) {
    if (delta.sequence <= this.sequence) return;
    this.sequence = delta.sequence;
    if (delta.clock) this.#setClock(delta.clock);
    else if (delta.now_ms !== undefined) this.#setClock({ ...this.clock, now_ms: delta.now_ms });
    for (const field of ['store', 'settings', 'summary', 'invariants', 'weights']) {
      if (delta[field]) this[field] = delta[field];
    }
    if (delta.scenario !== undefined) this.scenario = delta.scenario;
    for (const worker of delta.workers ?? []) this.workers.set(worker.number, this.#read(worker));
    for (const number of delta.removed ?? []) this.workers.delete(number);
    const moved = [];
    for (const [index, owner, token, mark] of delta.partitions ?? []) {
      const from = this.owners[index];
      if (from === undefined) continue;
      this.owners[index] = owner;
      this.tokens[index] = token;
      this.marks[index] = mark;
      moved.push({ index, from, to: owner, mark });
    }
    if (delta.point) {
      this.history.push(delta.point);
      if (this.history.length > HISTORY) this.history.shift();
    }
    const events = delta.events ?? [];
    const last = this.events.at(-1)?.number;
    const missed = events.length > 0 && last !== undefined && events[0].number > last + 1 ? { after: last } : null;
    this.events.push(...events);
    if (this.events.length > EVENTS) this.events.splice(0, this.events.length - EVENTS);
    this.#emit('delta', {
      moved,
      workers: (delta.workers ?? []).map((worker) => worker.number),
      removed: delta.removed ?? [],
      events,
      missed,
      point: delta.point,
      store: Boolean(delta.store),
      settings: Boolean(delta.settings),
      scenario: delta.scenario !== undefined,
    });
  }

  /** Events that no delta brought: of before the page was opened, or while the server was gone. */
  merge(events) {
    const known = new Set(this.events.map(({ number }) => number));
    const merged = [...this.events, ...events.filter(({ number }) => !known.has(number))];
    this.events = merged.sort((a, b) => a.number - b.number).slice(-EVENTS);
  }

  /** The number of the event after which some are missing, if some are. */
  get gap() {
    return this.events.findLast(({ number }, at) => this.events[at + 1]?.number > number + 1)?.number ?? null;
  }

  /** The time in the world: what the server said, and what has passed since. */
  now() {
    const { now_ms, running, speed } = this.clock;
    if (!running) return now_ms;
    // No further than a delta is away: if none comes, the world may well stand still.
    return now_ms + Math.min(1500, performance.now() - this.#clockRead) * speed;
  }

  can(action) {
    return this.actions.has(action);
  }

  indexOf(name) {
    return this.#indices.get(name);
  }

  nameOf(number) {
    return this.workers.get(number)?.name ?? (number < 0 ? 'nobody' : `worker ${number}`);
  }

  /** How many partitions have each mark. */
  markCounts() {
    const counts = new Uint32Array(16);
    for (const mark of this.marks) counts[mark & 15] += 1;
    return counts;
  }

  #setClock(clock) {
    this.clock = clock;
    beganAt(clock.began_unix_ms);
    this.#clockRead = performance.now();
  }

  /** A lease runs down by the world's clock, so a worker remembers when it was read. */
  #read(worker) {
    return { ...worker, read_ms: this.clock.now_ms };
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
