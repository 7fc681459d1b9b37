// Where on the map each partition lies: in a tile for each owner, or all in order.

const LARGEST_CELL = 62;
const SMALLEST_CELL = 2;
const TILE_GAP = 8;
const LABEL_HEIGHT = 17;
/** Narrower tiles have no room for a name. */
const LABEL_WIDTH = 76;
/** The lightest partition is drawn so large in relation to the heaviest, or it would not be seen. */
const LIGHTEST = 0.66;
/** Room in a tile beyond its share, so that a worker with more does not make all cells smaller. */
const HEADROOM = 1.15;

/** What is left free between cells. */
export const gap = (pitch) => (pitch >= 40 ? 3 : pitch >= 12 ? 2 : pitch >= 5 ? 1 : pitch >= 3 ? 0.6 : 0);

/** A rectangle with cells in rows: one owner's, or everybody's. */
export class Tile {
  constructor(owner, box, pitch, members, label) {
    this.owner = owner;
    this.box = box;
    this.members = members;
    this.label = label;
    this.top = box.y + (label ? LABEL_HEIGHT : 0);
    const height = box.height - (label ? LABEL_HEIGHT : 0);
    this.pitch = Math.min(pitch, pitchFor(members.length, box.width, height));
    this.columns = Math.max(1, Math.floor(box.width / this.pitch));
  }

  /** The left upper corner of a place in this tile. */
  place(at) {
    const row = Math.floor(at / this.columns);
    return { x: this.box.x + (at - row * this.columns) * this.pitch, y: this.top + row * this.pitch };
  }

  /** Which member is at a point, or nothing. */
  memberAt(x, y) {
    const column = Math.floor((x - this.box.x) / this.pitch);
    const row = Math.floor((y - this.top) / this.pitch);
    if (column < 0 || column >= this.columns || row < 0) return undefined;
    return this.members[row * this.columns + column];
  }
}

/** All tiles of one moment, and each partition's place in them. */
export class Arrangement {
  /**
   * `homes` says in whose tile each partition lies: its owner's, or its last owner's; `owners` who has
   * a tile in any case; `columns` how many there were before.
   */
  constructor(model, kind, { homes, owners, columns }, width, height) {
    this.kind = kind;
    this.columns = columns;
    this.tiles = kind === 'owner' ? this.#ownerTiles(model, homes, owners, width, height) : [orderTile(model, width, height)];
    const total = model.names.length;
    this.xs = new Float32Array(total);
    this.ys = new Float32Array(total);
    this.sizes = new Float32Array(total);
    this.byOwner = new Map();
    const scale = scaleOf(model.weights);
    for (const tile of this.tiles) {
      this.byOwner.set(tile.owner, tile);
      tile.members.forEach((index, at) => {
        const { x, y } = tile.place(at);
        const room = tile.pitch - gap(tile.pitch);
        const size = room * scale(index);
        this.xs[index] = x + (room - size) / 2;
        this.ys[index] = y + (room - size) / 2;
        this.sizes[index] = size;
      });
    }
  }

  /** What lies at a point: `{tile, index}`, each if there is one. */
  at(x, y) {
    const tile = this.tiles.find(({ box }) =>
      x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height);
    return { tile, index: tile?.memberAt(x, y) };
  }

  /** The nearest partition in a direction: what an arrow key goes to. */
  next(from, across, down) {
    // From middle to middle: cells differ in size.
    const [x0, y0] = [this.xs[from] + this.sizes[from] / 2, this.ys[from] + this.sizes[from] / 2];
    let best = from;
    let least = Infinity;
    for (let index = 0; index < this.xs.length; index += 1) {
      const [dx, dy] = [this.xs[index] + this.sizes[index] / 2 - x0, this.ys[index] + this.sizes[index] / 2 - y0];
      const along = dx * across + dy * down;
      if (along < 0.5) continue;
      const aside = Math.abs(dx * down) + Math.abs(dy * across);
      const distance = along + 4 * aside;
      if (distance < least) [least, best] = [distance, index];
    }
    return best;
  }

  #ownerTiles(model, homes, expected, width, height) {
    const members = new Map(expected.map((owner) => [owner, []]));
    for (let index = 0; index < homes.length; index += 1) {
      const list = members.get(homes[index]);
      if (list) list.push(index);
      else members.set(homes[index], [index]);
    }
    // Nobody's come last; the others keep the order of their numbers.
    const owners = [...members.keys()].sort((a, b) => (a < 0) - (b < 0) || a - b);
    const { columns, rows, pitch, label } = division(owners.length, roomNeeded(model), width, height, this.columns);
    this.columns = columns;
    const [across, down] = [width / columns, height / rows];
    return owners.map((owner, at) => {
      const box = {
        x: Math.round((at % columns) * across),
        y: Math.round(Math.floor(at / columns) * down),
        width: Math.floor(across - TILE_GAP * Math.min(1, across / 60)),
        height: Math.floor(down - TILE_GAP * Math.min(1, down / 60)),
      };
      return new Tile(owner, box, pitch, members.get(owner), label);
    });
  }
}

/** How large each cell is in its place: areas are as weights, down to where one would not be seen. */
function scaleOf(weights) {
  if (!weights) return () => 1;
  let most = 0;
  for (const weight of weights) most = Math.max(most, weight);
  return (index) => Math.max(LIGHTEST, Math.sqrt(weights[index] / (most || 1)));
}

function orderTile(model, width, height) {
  const members = model.names.map((_, index) => index);
  return new Tile(null, { x: 0, y: 0, width, height }, LARGEST_CELL, members, false);
}

/** How many cells the tile of the worker with the greatest share should have room for. */
function roomNeeded(model) {
  let most = 1;
  for (const worker of model.workers.values()) {
    if (worker.alive) most = Math.max(most, (worker.share * worker.owned) / (worker.load || 1) || worker.share);
  }
  const alive = [...model.workers.values()].filter((worker) => worker.alive).length || 1;
  const mean = model.names.length / alive;
  return Math.ceil(Math.max(mean, Math.min(most, model.names.length)) * HEADROOM);
}

/** The columns that give the largest cells, or those that there were if they are nearly as good. */
function division(tiles, room, width, height, before) {
  let best = null;
  for (let columns = 1; columns <= Math.max(1, tiles); columns += 1) {
    const rows = Math.max(1, Math.ceil(tiles / columns));
    const [across, down] = [width / columns, height / rows];
    const label = across >= LABEL_WIDTH && down >= 44;
    const inner = down - TILE_GAP * Math.min(1, down / 60) - (label ? LABEL_HEIGHT : 0);
    const pitch = pitchFor(room, across - TILE_GAP * Math.min(1, across / 60), inner);
    // Of divisions with cells alike the one with squarer tiles looks calmer, one with names is worth
    // somewhat smaller cells, and one that leaves everything where it is much smaller ones.
    const worth = (pitch - 0.4 * Math.abs(Math.log(across / down))) * (label ? 1.3 : 1) * (columns === before ? 1.25 : 1);
    if (!best || worth > best.worth) best = { columns, rows, pitch, label, worth };
  }
  return best;
}

/** The largest cell of which so many fit. */
function pitchFor(count, width, height) {
  if (count === 0) return LARGEST_CELL;
  let pitch = Math.min(LARGEST_CELL, Math.max(SMALLEST_CELL, Math.sqrt((width * height) / count)));
  while (pitch > SMALLEST_CELL && Math.floor(width / pitch) * Math.floor(height / pitch) < count) {
    pitch -= pitch > 8 ? 0.5 : 0.125;
  }
  return Math.max(1, pitch);
}
