// Workers as cards: load against the share, health, state, who leads, and the lease running down.

import { badgesOf, conditionOf, hasClock, leaseLeft } from './condition.js';
import { byId, counted, drawing, element, figure, say } from './element.js';
import { still } from './palette.js';

const RINGS_EVERY_MS = 66;
const RINGS_EVERY_MS_STILL = 1000;

/** Emits `worker` (`{number, byKey}`) when one is picked. */
export class WorkerCards extends EventTarget {
  #model;
  #palette;
  #menu;
  #list = byId('cards');
  #order = byId('workers-order');
  #cards = new Map();
  #seen = new Set();
  #picked = null;
  #ringsAt = 0;
  #scale = 1;
  #watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const number = Number(target.dataset.worker);
      if (isIntersecting) this.#seen.add(number);
      else this.#seen.delete(number);
    }
  });

  constructor(model, palette, menu) {
    super();
    this.#model = model;
    this.#palette = palette;
    this.#menu = menu;
    model.addEventListener('snapshot', () => this.#load());
    model.addEventListener('delta', ({ detail }) => this.#change(detail));
    palette.addEventListener('change', () => this.#paint([...this.#cards.keys()]));
    this.#order.addEventListener('change', () => this.#arrange());
    this.#list.addEventListener('click', (event) => this.#click(event));
    this.#list.addEventListener('keydown', (event) => this.#key(event));
    this.#list.addEventListener('focusin', (event) => this.#rove(event.target.closest('li')));
    requestAnimationFrame((now) => this.#rings(now));
  }

  pick(number) {
    this.#picked = number;
    for (const [each, card] of this.#cards) card.root.classList.toggle('picked', each === number);
    this.#cards.get(number)?.root.scrollIntoView({ block: 'nearest' });
  }

  focus() {
    (this.#cards.get(this.#picked)?.main ?? this.#list.querySelector('.main'))?.focus();
  }

  #load() {
    for (const number of [...this.#cards.keys()]) if (!this.#model.workers.has(number)) this.#remove(number);
    this.#paint([...this.#model.workers.keys()]);
    this.#arrange();
  }

  #change({ workers, removed, store, settings }) {
    for (const number of removed) this.#remove(number);
    const fresh = workers.some((number) => !this.#cards.has(number));
    const scale = this.#measure();
    // Bars are drawn against the greatest load: if that changes, so do they all; so does what all say of the store.
    this.#paint(scale || store || settings ? [...this.#model.workers.keys()] : workers);
    if (fresh || (workers.length > 0 && this.#order.value === 'load')) this.#arrange();
  }

  #remove(number) {
    const card = this.#cards.get(number);
    if (!card) return;
    this.#watch.unobserve(card.root);
    card.root.remove();
    this.#cards.delete(number);
    this.#seen.delete(number);
  }

  /** What a full bar stands for; answers whether it changed. */
  #measure() {
    let most = 1;
    for (const { load, share } of this.#model.workers.values()) most = Math.max(most, load, share);
    const step = 10 ** Math.floor(Math.log10(most)) / 2;
    const scale = Math.ceil((most * 1.05) / step) * step;
    const changed = scale !== this.#scale;
    this.#scale = scale;
    return changed;
  }

  #paint(numbers) {
    this.#measure();
    for (const number of numbers) {
      const worker = this.#model.workers.get(number);
      if (!worker) continue;
      let card = this.#cards.get(number);
      if (!card) {
        card = makeCard(number);
        this.#cards.set(number, card);
        this.#watch.observe(card.root);
        this.#list.append(card.root);
      }
      this.#dress(card, worker);
    }
    const alive = [...this.#model.workers.values()].filter((worker) => worker.alive).length;
    say(byId('workers-count'), String(alive));
  }

  #dress({ root, main, name, id, owned, load, badges, state, more }, worker) {
    const style = root.style;
    style.setProperty('--owner', this.#palette.owner(worker.number));
    style.setProperty('--load', String(Math.min(1, worker.load / this.#scale)));
    style.setProperty('--share', String(Math.min(1, worker.share / this.#scale)));
    const mean = this.#model.summary?.mean ?? 0;
    style.setProperty('--mean', String(Math.min(1, mean / this.#scale)));
    const condition = conditionOf(worker, this.#model);
    root.classList.toggle('gone', !worker.alive);
    root.classList.toggle('leads', worker.leader);
    root.classList.toggle('ill', condition.bad);
    root.classList.toggle('stuck', worker.alive && (worker.paused || Boolean(worker.isolated)));
    root.classList.toggle('clockless', !hasClock(worker));
    say(name, worker.name);
    say(id, worker.id && worker.id !== worker.name ? worker.id : '');
    say(owned, figure(worker.owned));
    // Where all partitions weigh 1, the load is their count once more.
    say(load, this.#model.weights ? `load ${figure(worker.load)}` : '');
    say(state, condition.text);
    const wanted = badgesOf(worker, this.#model);
    const key = wanted.map(({ text }) => text).join(', ');
    if (badges.dataset.key !== key) {
      badges.dataset.key = key;
      badges.replaceChildren(...wanted.map(({ text, kind, about }) => element('span', { class: `badge ${kind}`, title: about }, text)));
    }
    const words = `${worker.name}${worker.leader ? ', leads' : ''}, ${condition.text}, ${counted(worker.owned, 'partition')}, ` +
      `load ${figure(worker.load)} of a share of ${figure(worker.share)}${key ? `, ${key}` : ''}`;
    if (main.title !== words) {
      main.title = words;
      main.setAttribute('aria-label', words);
    }
    more.hidden = !this.#menu.offers(worker);
    more.setAttribute('aria-label', `What to do with ${worker.name}`);
  }

  /** Puts the cards in order, and touches only those that are not where they should be. */
  #arrange() {
    const workers = [...this.#model.workers.values()];
    const orders = {
      number: (a, b) => a.number - b.number,
      load: (a, b) => b.alive - a.alive || b.load - a.load || a.number - b.number,
      zone: (a, b) => (a.zone ?? '').localeCompare(b.zone ?? '') || a.number - b.number,
    };
    workers.sort(orders[this.#order.value]);
    workers.forEach(({ number }, at) => {
      const { root } = this.#cards.get(number);
      if (this.#list.children[at] !== root) this.#list.insertBefore(root, this.#list.children[at] ?? null);
    });
    this.#rove();
  }

  #click(event) {
    const card = event.target.closest('li');
    if (!card) return;
    const number = Number(card.dataset.worker);
    const more = event.target.closest('.more');
    if (more) this.#menu.open(this.#model.workers.get(number), more);
    else this.dispatchEvent(new CustomEvent('worker', { detail: { number, byKey: event.detail === 0 } }));
  }

  /** Arrows go from card to card, and aside to what can be done with one; Tab leaves the list. */
  #key(event) {
    const card = event.target.closest('li');
    if (!card) return;
    const ways = {
      ArrowDown: () => card.nextElementSibling?.querySelector('.main'),
      ArrowUp: () => card.previousElementSibling?.querySelector('.main'),
      ArrowRight: () => card.querySelector('.more'),
      ArrowLeft: () => card.querySelector('.main'),
      Home: () => this.#list.firstElementChild.querySelector('.main'),
      End: () => this.#list.lastElementChild.querySelector('.main'),
    };
    if (!(event.key in ways)) return;
    event.preventDefault();
    ways[event.key]()?.focus();
  }

  /** One card is where Tab comes to: the last that had the focus, or the first. */
  #rove(card) {
    const now = card ?? this.#list.querySelector('.main[tabindex="0"]')?.parentElement ?? this.#list.firstElementChild;
    for (const other of this.#list.querySelectorAll('.main[tabindex="0"]')) if (other.parentElement !== now) other.tabIndex = -1;
    if (now) now.querySelector('.main').tabIndex = 0;
  }

  /** The rings of the cards in sight run down by the world's clock. */
  #rings(now) {
    if (now - this.#ringsAt >= (still.matches ? RINGS_EVERY_MS_STILL : RINGS_EVERY_MS)) {
      this.#ringsAt = now;
      const world = this.#model.now();
      for (const number of this.#seen) {
        const worker = this.#model.workers.get(number);
        const ring = this.#cards.get(number)?.ring;
        if (!worker || !ring) continue;
        const left = hasClock(worker) ? leaseLeft(worker, world) / worker.lease_ms : 0;
        const offset = (1 - Math.min(1, left)).toFixed(2);
        if (ring.dataset.offset !== offset) {
          ring.dataset.offset = offset;
          ring.style.strokeDashoffset = offset;
          ring.classList.toggle('low', left < 0.34);
        }
      }
    }
    requestAnimationFrame((next) => this.#rings(next));
  }
}

function makeCard(number) {
  const ring = drawing('circle', { class: 'ring', cx: 12, cy: 12, r: 10, pathLength: 1 });
  const clock = drawing('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true', class: 'clock' },
    drawing('circle', { class: 'track', cx: 12, cy: 12, r: 10 }), ring,
    drawing('circle', { class: 'core', cx: 12, cy: 12, r: 6.5 }),
    drawing('path', { class: 'star', d: 'M12 7.6l1.3 2.8 3 .4-2.2 2.1.5 3-2.6-1.4-2.6 1.4.5-3-2.2-2.1 3-.4z' }));
  const [name, id, owned, load, state] = ['name', 'id', 'owned', 'weighs', 'state'].map((part) => element('span', { class: part }));
  const badges = element('span', { class: 'badges' });
  const bar = element('span', { class: 'bar', 'aria-hidden': 'true' }, element('i', { class: 'load' }), element('i', { class: 'mean' }), element('i', { class: 'share' }));
  const main = element('button', { class: 'main', tabindex: -1 }, clock,
    element('span', { class: 'who' }, name, id), element('span', { class: 'much' }, owned, load), bar,
    element('span', { class: 'line' }, state, badges));
  const more = element('button', { class: 'more', tabindex: -1, 'aria-haspopup': 'menu' }, '⋯');
  const root = element('li', { class: 'card', data: { worker: number } }, main, more);
  return { root, main, ring, name, id, owned, load, state, badges, more };
}
