// Draws partitions: a cell each, coloured by owner, with a mark where it is not where it should be.

import { gap } from './arrangement.js';

const ROUNDED_FROM = 8;
const GLYPHS_FROM = 7;

/** Paints an arrangement on a canvas. */
export class Cells {
  #palette;

  constructor(palette) {
    this.#palette = palette;
  }

  /**
   * Draws everything. `look` says which cells are left out because they fly, and which alone are lit:
   * `{hidden: Set, lit: (index) => boolean | null}`.
   */
  paint(context, model, arrangement, look) {
    const ink = this.#palette.named('ink');
    prepare(context);
    if (arrangement.kind === 'owner') for (const tile of arrangement.tiles) this.#tile(context, model, tile);
    this.#bodies(context, model, arrangement, look);
    context.strokeStyle = ink;
    context.fillStyle = ink;
    for (let index = 0; index < model.marks.length; index += 1) {
      const mark = model.marks[index];
      if (mark === 0 || look.hidden.has(index) || (look.lit && !look.lit(index))) continue;
      this.mark(context, mark, arrangement.xs[index], arrangement.ys[index], arrangement.sizes[index]);
    }
  }

  /** The sign of a mark in a cell. */
  mark(context, mark, x, y, size) {
    if (mark === 9) return this.#alarm(context, x, y, size);
    if (mark === 8) return;
    if (size < GLYPHS_FROM) {
      const dot = Math.max(1, size / 2.6);
      context.fillRect(x + (size - dot) / 2, y + (size - dot) / 2, dot, dot);
      return;
    }
    const [cx, cy, unit] = [x + size / 2, y + size / 2, size / 12];
    context.lineWidth = Math.max(1.2, 1.5 * unit);
    context.beginPath();
    GLYPHS[mark]?.(context, cx, cy, unit);
  }

  /** One cell by itself, as flights draw it. */
  body(context, x, y, size) {
    context.beginPath();
    box(context, x, y, size);
    context.fill();
  }

  /** Cells by colour, so that the canvas changes its colour seldom. */
  #bodies(context, model, arrangement, look) {
    const bright = new Map();
    const faded = new Map();
    const hollow = [];
    const dim = new Map();
    for (let index = 0; index < model.owners.length; index += 1) {
      if (look.hidden.has(index)) continue;
      const owner = model.owners[index];
      if (look.lit && !look.lit(index)) into(dim, owner, index);
      else if (owner < 0) hollow.push(index);
      else into(model.marks[index] === 0 ? bright : faded, owner, index);
    }
    for (const [cells, alpha] of [[bright, 1], [faded, 0.42], [dim, 0.16]]) {
      context.globalAlpha = alpha;
      for (const [owner, indices] of cells) {
        context.fillStyle = owner < 0 ? this.#palette.named('faint') : this.#palette.owner(owner);
        context.beginPath();
        for (const index of indices) box(context, arrangement.xs[index], arrangement.ys[index], arrangement.sizes[index]);
        context.fill();
      }
    }
    context.globalAlpha = 1;
    context.strokeStyle = this.#palette.named('bad');
    context.lineWidth = 1;
    context.beginPath();
    for (const index of hollow) {
      const size = arrangement.sizes[index] - 1;
      context.rect(arrangement.xs[index] + 0.5, arrangement.ys[index] + 0.5, Math.max(0.5, size), Math.max(0.5, size));
    }
    context.stroke();
  }

  /** A tile's name and count, and empty places up to its share. */
  #tile(context, model, tile) {
    const worker = model.workers.get(tile.owner);
    const absent = tile.owner >= 0 && !worker?.alive;
    if (tile.label) this.#label(context, model, tile, worker, absent);
    if (!worker || absent || worker.share <= 0) return;
    const each = worker.owned > 0 ? worker.load / worker.owned : 1;
    const places = Math.min(Math.round(worker.share / (each || 1)), tile.members.length + 400);
    context.strokeStyle = this.#palette.named('edge');
    context.lineWidth = 1;
    const size = tile.pitch - gap(tile.pitch) - 1;
    if (size >= GLYPHS_FROM) context.setLineDash([2, 2]);
    context.beginPath();
    for (let at = tile.members.length; at < places && size > 1; at += 1) {
      const { x, y } = tile.place(at);
      if (y + size > tile.box.y + tile.box.height) break;
      context.rect(x + 0.5, y + 0.5, size, size);
    }
    context.stroke();
    context.setLineDash([]);
  }

  #label(context, model, tile, worker, absent) {
    const { x, y, width } = tile.box;
    const number = String(tile.members.length);
    context.textBaseline = 'alphabetic';
    context.font = `500 11px ${this.#palette.named('sans')}`;
    context.textAlign = 'right';
    context.fillStyle = this.#palette.named('soft');
    const taken = context.measureText(number).width + 8;
    context.fillText(number, x + width - 2, y + 11);
    context.textAlign = 'left';
    context.fillStyle = this.#palette.named(absent || tile.owner < 0 ? 'bad' : 'ink');
    const name = (worker?.leader ? '★ ' : '') + model.nameOf(tile.owner) + (absent ? ' †' : '');
    context.fillText(fitted(context, name, width - taken), x, y + 11);
  }

  #alarm(context, x, y, size) {
    context.save();
    context.fillStyle = this.#palette.named('bad');
    context.beginPath();
    context.moveTo(x + size, y);
    context.lineTo(x + size, y + size);
    context.lineTo(x, y + size);
    context.fill();
    context.strokeStyle = context.fillStyle;
    context.lineWidth = 2;
    context.strokeRect(x, y, size, size);
    context.restore();
  }
}

/** Around the cells, in which rings about the outermost are drawn. */
export const MARGIN = 4;

/** An empty canvas, in CSS pixels from the first cell on. */
export function prepare(context) {
  const scale = devicePixelRatio || 1;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  context.setTransform(scale, 0, 0, scale, MARGIN * scale, MARGIN * scale);
}

function box(context, x, y, size) {
  if (size >= ROUNDED_FROM) context.roundRect(x, y, size, size, size >= 30 ? 4 : size >= 14 ? 3 : 2);
  else context.rect(x, y, size, size);
}

function into(map, key, value) {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}

/** A shape for each mark, so that colour is not needed to tell them apart; a unit is a twelfth of a cell. */
const GLYPHS = {
  1(c, x, y, u) {
    c.moveTo(x - 2.4 * u, y - 3 * u);
    c.lineTo(x + 3 * u, y);
    c.lineTo(x - 2.4 * u, y + 3 * u);
    c.fill();
  },
  2(c, x, y, u) {
    c.arc(x, y, 3 * u, 0, 2 * Math.PI);
    c.stroke();
    c.beginPath();
    c.moveTo(x, y);
    c.arc(x, y, 3 * u, -Math.PI / 2, Math.PI / 4);
    c.fill();
  },
  3(c, x, y, u) {
    c.rect(x - 3 * u, y - 3 * u, 1.8 * u, 6 * u);
    c.rect(x + 1.2 * u, y - 3 * u, 1.8 * u, 6 * u);
    c.fill();
  },
  4(c, x, y, u) {
    c.moveTo(x - 3.4 * u, y - 2.6 * u);
    c.lineTo(x + 3.4 * u, y - 2.6 * u);
    c.moveTo(x, y + 3.2 * u);
    c.lineTo(x, y - 0.6 * u);
    c.stroke();
  },
  5(c, x, y, u) {
    c.moveTo(x - 3.4 * u, y + 3.4 * u);
    c.lineTo(x + 3.4 * u, y - 3.4 * u);
    c.stroke();
  },
  6(c, x, y, u) {
    c.moveTo(x - 2.6 * u, y - 2.6 * u);
    c.lineTo(x + 2.6 * u, y + 2.6 * u);
    c.moveTo(x + 2.6 * u, y - 2.6 * u);
    c.lineTo(x - 2.6 * u, y + 2.6 * u);
    c.stroke();
  },
  7(c, x, y, u) {
    c.arc(x, y, 1.9 * u, 0, 2 * Math.PI);
    c.fill();
  },
  10(c, x, y, u) {
    c.rect(x - 2.6 * u, y - 2.6 * u, 5.2 * u, 5.2 * u);
    c.stroke();
  },
};
