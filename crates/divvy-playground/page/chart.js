// Charts over the world's time, drawn by hand: axes, lines, a reading under the pointer.

import { byId, count, element, instant, say, wallOffset } from './element.js';

const LEFT = 38;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 18;
const KINDS_MARKED = new Set(['killed', 'joined', 'left', 'leader', 'store', 'violation', 'paused']);
const MARKS_KEPT = 400;
/** More would press what just happened into a corner. */
const POINTS = 240;

/** How fast partitions moved between a point and the one before. */
function perSecond(point, before) {
  const ms = point.at_ms - (before?.at_ms ?? point.at_ms);
  return ms > 0 ? (Math.max(0, point.moves - before.moves) * 1000) / ms : 0;
}

const CHARTS = [
  {
    title: 'Convergence',
    about: 'partitions that are owned, and that move',
    lines: [
      { name: 'owned', colour: 'ok', value: (point) => point.owned, fill: true },
      { name: 'moving', colour: 'warn', value: (point) => point.moving },
    ],
    top: (model, most) => Math.max(most, model.names.length),
    text: count,
  },
  {
    title: 'Balance',
    about: 'the greatest load against the mean',
    lines: [{ name: 'imbalance', colour: 'accent', value: (point) => point.imbalance }],
    bottom: 1,
    top: (_, most) => Math.max(1.1, Math.min(most * 1.05, 10)),
    text: (value) => value.toFixed(2),
  },
  {
    title: 'Moves per second',
    about: 'from one worker to another',
    lines: [{ name: 'per second', colour: 'ink', value: perSecond, bars: true }],
    top: (_, most) => Math.max(4, most),
    text: (value) => (value > 0 && value < 10 ? value.toFixed(1) : count(value)),
  },
];

/** The three charts, which share the axis of time and where the pointer is. */
export class Charts {
  #model;
  #palette;
  #charts;
  #marks = [];
  #hover = null;
  #due = false;

  constructor(model, palette) {
    this.#model = model;
    this.#palette = palette;
    this.#charts = CHARTS.map((what) => this.#make(what));
    byId('charts').append(...this.#charts.map(({ root }) => root));
    const resize = new ResizeObserver(() => this.#draw());
    for (const { canvas } of this.#charts) resize.observe(canvas.parentElement);
    model.addEventListener('snapshot', ({ detail }) => {
      if (!detail.again) this.#marks = [];
      this.#draw();
    });
    model.addEventListener('delta', ({ detail }) => {
      this.#marks.push(...detail.events.filter((event) => KINDS_MARKED.has(event.kind)));
      this.#marks = this.#marks.slice(-MARKS_KEPT);
      if (detail.point) this.#draw();
    });
    palette.addEventListener('change', () => this.#draw());
  }

  #make(what) {
    const canvas = element('canvas', { role: 'img' });
    const reading = element('span', { class: 'reading' });
    const root = element('figure', { class: 'chart' },
      element('figcaption', {}, element('b', {}, what.title), element('span', { class: 'about' }, what.about), reading),
      element('div', { class: 'plot' }, canvas));
    canvas.addEventListener('pointermove', (event) => {
      const { left, width } = canvas.getBoundingClientRect();
      this.#hover = (event.clientX - left - LEFT) / (width - LEFT - RIGHT);
      this.#draw();
    });
    canvas.addEventListener('pointerleave', () => {
      this.#hover = null;
      this.#draw();
    });
    return { what, root, canvas, reading };
  }

  #draw() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      for (const chart of this.#charts) this.#paint(chart);
    });
  }

  #paint({ what, canvas, reading }) {
    const history = this.#model.history.slice(-POINTS);
    const { clientWidth: width, clientHeight: height } = canvas.parentElement;
    if (width === 0 || height === 0) return;
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const rows = what.lines.map(({ value }) => history.map((point, at) => value(point, history[at - 1])));
    const bottom = what.bottom ?? 0;
    const top = round(what.top(this.#model, Math.max(bottom, ...rows.flat())) - bottom) + bottom;
    const begin = history[0]?.at_ms ?? 0;
    const end = Math.max(history.at(-1)?.at_ms ?? 0, begin + 1000);
    const frame = {
      width, height, begin, end,
      x: (ms) => LEFT + ((ms - begin) / (end - begin)) * (width - LEFT - RIGHT),
      y: (value) => TOP + (1 - Math.min(1, Math.max(0, (value - bottom) / (top - bottom)))) * (height - TOP - BOTTOM),
    };
    this.#axes(context, frame, bottom, top, what.text);
    this.#events(context, frame);
    what.lines.forEach((line, at) => this.#line(context, frame, line, rows[at], history));
    this.#read(context, frame, what, rows, history, reading, canvas);
  }

  #axes(context, { width, height, begin, end, x, y }, bottom, top, text) {
    context.font = `10px ${this.#palette.named('sans')}`;
    context.lineWidth = 1;
    context.strokeStyle = this.#palette.named('line');
    context.fillStyle = this.#palette.named('soft');
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.beginPath();
    for (const value of [bottom, (bottom + top) / 2, top]) {
      const at = Math.round(y(value)) + 0.5;
      context.moveTo(LEFT, at);
      context.lineTo(width - RIGHT, at);
      context.fillText(text(value), LEFT - 6, at);
    }
    context.stroke();
    context.textBaseline = 'alphabetic';
    const wide = context.measureText(instant(end)).width + 14;
    const step = timeStep((end - begin) / Math.max(1, Math.floor((width - LEFT - RIGHT) / wide)));
    // On a wall clock's times one reads, a world's own begins with nought.
    const shift = wallOffset() % step;
    let free = 0;
    for (let ms = Math.ceil((begin + shift) / step) * step - shift; ms <= end; ms += step) {
      const text = instant(ms).replace(/\.0$/, '');
      const half = context.measureText(text).width / 2;
      const middle = Math.max(LEFT - 8 + half, Math.min(x(ms), width - half - 2));
      if (middle - half < free) continue;
      free = middle + half + 8;
      context.textAlign = 'center';
      context.fillText(text, middle, height - 5);
    }
  }

  /** Where somebody came, went or died: what the lines answer to. */
  #events(context, { height, begin, end, x }) {
    for (const { at_ms, kind } of this.#marks) {
      if (at_ms < begin || at_ms > end) continue;
      context.fillStyle = this.#palette.named(kind === 'killed' || kind === 'violation' ? 'bad' : 'faint');
      context.fillRect(Math.round(x(at_ms)), height - BOTTOM, 1, 4);
    }
  }

  #line(context, { x, y, height }, { colour, fill, bars }, values, history) {
    if (values.length === 0) return;
    const ink = this.#palette.named(colour);
    context.strokeStyle = ink;
    context.fillStyle = ink;
    const ground = height - BOTTOM;
    context.beginPath();
    if (bars) {
      const wide = Math.max(1, (x(history.at(-1).at_ms) - x(history[0].at_ms)) / history.length - 1);
      values.forEach((value, at) => {
        if (value > 0) context.rect(x(history[at].at_ms) - wide, y(value), wide, Math.max(1, ground - y(value)));
      });
      context.globalAlpha = 0.75;
      context.fill();
      context.globalAlpha = 1;
      return;
    }
    values.forEach((value, at) => context.lineTo(x(history[at].at_ms), y(value)));
    context.lineWidth = 1.5;
    context.lineJoin = 'round';
    context.stroke();
    if (!fill) return;
    context.lineTo(x(history.at(-1).at_ms), ground);
    context.lineTo(x(history[0].at_ms), ground);
    context.globalAlpha = 0.12;
    context.fill();
    context.globalAlpha = 1;
  }

  /** The values under the pointer, or the newest; the same words are the chart's text. */
  #read(context, { x, y, height, begin, end }, what, rows, history, reading, canvas) {
    let at = history.length - 1;
    if (this.#hover !== null && at >= 0) {
      const wanted = begin + this.#hover * (end - begin);
      at = history.findIndex((point) => point.at_ms >= wanted);
      if (at < 0) at = history.length - 1;
      const across = Math.round(x(history[at].at_ms)) + 0.5;
      context.strokeStyle = this.#palette.named('soft');
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(across, TOP);
      context.lineTo(across, height - BOTTOM);
      context.stroke();
      what.lines.forEach(({ colour }, line) => {
        context.fillStyle = this.#palette.named(colour);
        context.beginPath();
        context.arc(across, y(rows[line][at]), 3, 0, 2 * Math.PI);
        context.fill();
      });
    }
    if (at < 0) return say(reading, '');
    const values = what.lines.map(({ name }, line) => `${name} ${what.text(rows[line][at])}`).join(' · ');
    say(reading, this.#hover === null ? values : `${instant(history[at].at_ms)} · ${values}`);
    canvas.setAttribute('aria-label', `${what.title}, ${what.about}: ${values} at ${instant(history[at].at_ms)}`);
  }
}

/** The next number that is easy to read. */
function round(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 0.9999);
}

function timeStep(ms) {
  const steps = [500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 180_000, 300_000, 600_000, 1_800_000, 3_600_000];
  return steps.find((step) => step >= ms) ?? steps.at(-1) * Math.ceil(ms / steps.at(-1));
}
