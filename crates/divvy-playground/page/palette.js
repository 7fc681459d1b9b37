// Colours: one for each owner, and the theme that they are seen in.

const GOLDEN_ANGLE = 137.508;
/** Lightness and chroma in turns, so that owners with hues alike differ in these. */
const LIGHT = [[0.66, 0.15], [0.5, 0.13], [0.78, 0.12], [0.58, 0.08], [0.42, 0.1]];
const DARK = [[0.7, 0.13], [0.54, 0.13], [0.82, 0.1], [0.62, 0.07], [0.46, 0.11]];
/** The step to the next turn: hues are spread well among so many. */
const IN_TURN = 13;

const stored = (() => {
  try {
    return localStorage.getItem('divvy.theme');
  } catch {
    return null; // A browser that keeps nothing follows the system.
  }
})();

/** Which theme is on, and the colours in it. Emits `change`. */
export class Palette extends EventTarget {
  #chosen = stored === 'light' || stored === 'dark' ? stored : null;
  #system = matchMedia('(prefers-color-scheme: dark)');
  #owners = new Map();
  #named = new Map();

  constructor() {
    super();
    this.#system.addEventListener('change', () => this.#show());
    this.#show();
  }

  get dark() {
    return this.#chosen ? this.#chosen === 'dark' : this.#system.matches;
  }

  /** From light to dark or back; the choice that equals the system's is none. */
  turn() {
    const wanted = this.dark ? 'light' : 'dark';
    this.#chosen = (wanted === 'dark') === this.#system.matches ? null : wanted;
    try {
      if (this.#chosen) localStorage.setItem('divvy.theme', this.#chosen);
      else localStorage.removeItem('divvy.theme');
    } catch {
      // Then it holds until the page is closed.
    }
    this.#show();
  }

  /** The colour of an owner; of nobody, the colour of the ground. */
  owner(number) {
    if (number < 0) return this.dark ? '#1d2521' : '#e3e6e0';
    let colour = this.#owners.get(number);
    if (!colour) {
      const turns = this.dark ? DARK : LIGHT;
      const [lightness, chroma] = turns[Math.floor(number / IN_TURN) % turns.length];
      const hue = (28 + number * GOLDEN_ANGLE) % 360;
      colour = `oklch(${lightness} ${chroma} ${hue.toFixed(1)})`;
      this.#owners.set(number, colour);
    }
    return colour;
  }

  /** A colour of the style sheet, for canvases. */
  named(name) {
    let colour = this.#named.get(name);
    if (!colour) {
      colour = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
      this.#named.set(name, colour);
    }
    return colour;
  }

  #show() {
    this.#owners.clear();
    this.#named.clear();
    document.documentElement.dataset.theme = this.dark ? 'dark' : 'light';
    this.dispatchEvent(new Event('change'));
  }
}

/** Whether things may move on the screen. */
export const still = matchMedia('(prefers-reduced-motion: reduce)');
