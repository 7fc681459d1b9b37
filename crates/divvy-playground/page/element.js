// Elements made of data: text is always text, never markup.

/**
 * Makes an element: `element('button', {class: 'small', onclick}, 'Add')`.
 *
 * Properties that begin with `on` are listeners; `data` is the dataset; `vars` are CSS variables, set
 * through the object model because the page's policy forbids style attributes; `undefined`, `null` and
 * `false` leave an attribute out.
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  dress(made, properties);
  made.append(...children.flat().filter(present));
  return made;
}

/** The same for SVG. */
export function drawing(tag, properties = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  dress(made, properties);
  made.append(...children.flat().filter(present));
  return made;
}

/** The element with that id. */
export const byId = (id) => document.getElementById(id);

/** Sets text only where it changed: a browser lays out anew for every text that is set. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A milliseconds count as people read it. */
export function duration(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** What the wall clock showed when the world's clock began; null where its time is its own. */
let began = null;

/** From here on, times are those of the wall clock if there is one. */
export function beganAt(unixMs) {
  began = unixMs ?? null;
}

/** What a wall clock's time is ahead of the world's, by its minutes and hours here; none where there is none. */
export const wallOffset = () => (began === null ? 0 : began - new Date(began).getTimezoneOffset() * 60_000);

/** A point in the world's time, as a clock shows it. */
export function instant(ms) {
  if (began !== null) return wallClock(new Date(began + ms));
  const tenths = Math.floor(ms / 100);
  const seconds = ((tenths % 600) / 10).toFixed(1).padStart(4, '0');
  const minutes = Math.floor(tenths / 600);
  if (minutes < 60) return `${minutes}:${seconds}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}:${seconds}`;
}

const two = (number) => String(number).padStart(2, '0');

/** A time of day; with its date if that is not today's. */
function wallClock(date) {
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const today = date.toDateString() === new Date().toDateString();
  return today ? time : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

/** A count with thin spaces between thousands. */
export const count = (number) => Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, '\u2009');

/** A measured number with no more digits than it needs. */
export function figure(number) {
  if (number === null || number === undefined) return '–';
  if (typeof number !== 'number') return String(number);
  return Number.isInteger(number) ? count(number) : number.toFixed(Math.abs(number) < 10 ? 2 : 1);
}

/** `1 partition`, `2 partitions`. */
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? '' : 's'}`;

function dress(made, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (name === 'data') Object.assign(made.dataset, value);
    else if (name === 'vars') for (const [key, set] of Object.entries(value)) made.style.setProperty(`--${key}`, set);
    else made.setAttribute(name, value === true ? '' : value);
  }
}

const present = (child) => child !== null && child !== undefined && child !== false;
