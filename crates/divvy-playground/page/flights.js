// What moves on the map: cells on their way to a new owner, flashes, ghosts and the cursor.

import { prepare } from './cells.js';
import { still } from './palette.js';

const FLIGHT_MS = 620;
const FLASH_MS = 700;
/** More at once would be neither smooth nor readable: the others flash. */
const FLIGHTS_AT_ONCE = 320;
const FLASHES_AT_ONCE = 700;

/** The layer above the cells. It draws only while something is on its way. */
export class Flights {
  /** Cells that are on their way, and so not drawn below. */
  flying = new Set();
  #context;
  #cells;
  #palette;
  #flights = [];
  #flashes = [];
  #frame = 0;
  #marks = () => {};
  #spot;
  #onlanded;

  /** `spot` says where a cell lies now: the map may be arranged anew while one is on its way. */
  constructor(canvas, cells, palette, spot, onlanded) {
    this.#context = canvas.getContext('2d');
    this.#cells = cells;
    this.#palette = palette;
    this.#spot = spot;
    this.#onlanded = onlanded;
  }

  /** What is drawn above everything: `marks(context)`. */
  set marks(paint) {
    this.#marks = paint;
    this.draw();
  }

  /** A cell goes from where it was to where it is. */
  fly(index, from, owner) {
    if (still.matches || this.#flights.length >= FLIGHTS_AT_ONCE) return this.flash(index, owner);
    this.#flights = this.#flights.filter((flight) => flight.index !== index);
    // Starts are spread a little, so that a swarm reads as many rather than as one.
    const begin = performance.now() + (this.#flights.length % 40) * 6;
    this.#flights.push({ index, from, begin, colour: this.#palette.owner(owner) });
    this.flying.add(index);
    this.draw();
  }

  /** A cell is of a new colour where it is. */
  flash(index, owner) {
    if (still.matches || this.#flashes.length >= FLASHES_AT_ONCE) return;
    this.#flashes.push({ index, begin: performance.now(), colour: this.#palette.owner(owner) });
    this.draw();
  }

  /** Everything that is under way is over: the map was arranged anew. */
  clear() {
    this.#flights = [];
    this.#flashes = [];
    this.flying.clear();
    this.draw();
  }

  draw() {
    if (!this.#frame) this.#frame = requestAnimationFrame((now) => this.#step(now));
  }

  #step(now) {
    this.#frame = 0;
    const context = this.#context;
    prepare(context);
    for (const flash of this.#flashes) this.#flash(context, flash, now);
    this.#flashes = this.#flashes.filter((flash) => now - flash.begin < FLASH_MS);
    for (const flight of this.#flights) this.#flight(context, flight, now);
    const landed = this.#flights.filter((flight) => now - flight.begin >= FLIGHT_MS);
    if (landed.length > 0) {
      this.#flights = this.#flights.filter((flight) => now - flight.begin < FLIGHT_MS);
      for (const flight of landed) {
        this.flying.delete(flight.index);
        this.#flashes.push({ index: flight.index, begin: now, colour: flight.colour });
      }
      this.#onlanded();
    }
    context.globalAlpha = 1;
    this.#marks(context);
    if (this.#flights.length > 0 || this.#flashes.length > 0) this.draw();
  }

  #flight(context, { index, from, begin, colour }, now) {
    const to = this.#spot(index);
    const done = Math.min(1, Math.max(0, (now - begin) / FLIGHT_MS));
    const eased = done < 0.5 ? 4 * done ** 3 : 1 - (-2 * done + 2) ** 3 / 2;
    const x = from.x + (to.x - from.x) * eased;
    // A low arc: what is on its way is told apart from what lies still.
    const arc = Math.sin(Math.PI * eased) * Math.min(26, Math.hypot(to.x - from.x, to.y - from.y) / 7);
    const y = from.y + (to.y - from.y) * eased - arc;
    context.fillStyle = colour;
    context.globalAlpha = 1;
    this.#cells.body(context, x, y, from.size + (to.size - from.size) * eased);
  }

  #flash(context, { index, begin, colour }, now) {
    const at = this.#spot(index);
    const done = Math.min(1, (now - begin) / FLASH_MS);
    const { size } = at;
    const spread = Math.max(2, size / 3) * done;
    context.globalAlpha = (1 - done) ** 2;
    context.strokeStyle = colour;
    context.lineWidth = Math.max(1, 2.5 * (1 - done));
    context.strokeRect(at.x - spread, at.y - spread, size + 2 * spread, size + 2 * spread);
  }
}
