// What if a worker dies: the plan before it happens, and what then came of it.

import { counted, duration, element, say } from './element.js';

const NAMED = 12;

/** Whether there is a death to foretell: what a live cluster would do is decided inside of it. */
export const canForetell = (model, number) => model.source !== 'observed' && Boolean(model.workers.get(number)?.alive);

/** The plan for one worker's death; watches the world from the death on. Emits `change`. */
export class Forecast extends EventTarget {
  plan = null;
  /** When it died, in the world's time, and when all that it had was settled. */
  diedAt = null;
  settledAt = null;
  /** Moves since then that the plan does not have. */
  aside = 0;
  #model;
  #api;
  #number;
  /** By name: a partition's index changes when others come. */
  #planned = new Map();

  constructor(model, api, number) {
    super();
    this.#model = model;
    this.#api = api;
    this.#number = number;
  }

  get number() {
    return this.#number;
  }

  /** From the index of a partition to its next owner: what the map shows as ghosts. */
  get planned() {
    const planned = new Map();
    for (const [name, to] of this.#planned) {
      const index = this.#model.indexOf(name);
      if (index !== undefined) planned.set(index, to);
    }
    return planned;
  }

  /** Asks for the plan; nothing is changed by that. */
  async ask() {
    this.plan = await this.#api.get(`workers/${this.#number}/what-if`);
    this.#planned = new Map(this.plan.moves.map(({ partition, to }) => [partition, to]));
    this.diedAt = null;
    this.settledAt = null;
    this.aside = 0;
    this.dispatchEvent(new Event('change'));
  }

  /** Looks at what a delta brought. */
  follow({ moved }) {
    if (!this.plan) return;
    const worker = this.#model.workers.get(this.#number);
    if (this.diedAt === null) {
      if (worker?.alive) return;
      this.diedAt = this.#model.clock.now_ms;
    }
    if (this.settledAt !== null) return;
    for (const { index, from, to } of moved) {
      if (from !== to && from >= 0 && to >= 0 && !this.#planned.has(this.#model.names[index])) this.aside += 1;
    }
    if (this.outcome().waiting === 0) this.settledAt = this.#model.clock.now_ms;
    this.dispatchEvent(new Event('change'));
  }

  /** How many went where the plan said, elsewhere, or nowhere yet. */
  outcome() {
    const seen = { kept: 0, elsewhere: [], waiting: 0 };
    for (const [index, to] of this.planned) {
      const owner = this.#model.owners[index];
      if (owner === to) seen.kept += 1;
      else if (owner < 0 || owner === this.#number) seen.waiting += 1;
      else seen.elsewhere.push({ index, to, owner });
    }
    return seen;
  }
}

/** Shows a forecast inside a worker's pane. */
export class ForecastView {
  root = element('section', { class: 'forecast', 'aria-label': 'What if it dies' });
  #model;
  #palette;
  #forecast;
  #act;
  #live = null;
  #offered = null;

  /** `act` has `ask` (plan it), `kill` and `drop` (put the plan away). */
  constructor(model, palette, forecast, act) {
    this.#model = model;
    this.#palette = palette;
    this.#forecast = forecast;
    this.#act = act;
    this.show();
  }

  show() {
    const { plan, diedAt } = this.#forecast;
    if (!plan) this.#offer();
    else if (diedAt === null) this.#showPlan(plan);
    else this.#showOutcome(plan);
  }

  /** Who is gone dies no more. */
  follow() {
    if (!this.#forecast.plan && this.#offered !== canForetell(this.#model, this.#forecast.number)) this.show();
  }

  #offer() {
    this.#live = null;
    this.#offered = canForetell(this.#model, this.#forecast.number);
    this.root.hidden = !this.#offered;
    this.root.replaceChildren(element('button', { class: 'wide', id: 'what-if', title: 'What if it dies (w)', onclick: this.#act.ask }, 'What if it dies?'),
      element('small', {}, 'Shows the plan. Nothing is changed.'));
  }

  #showPlan(plan) {
    this.#live = null;
    this.root.hidden = false;
    const gains = plan.by_worker.toSorted((a, b) => b.gains - a.gains);
    const most = Math.max(1, ...gains.map((each) => each.gains));
    const bars = gains.slice(0, NAMED).map(({ worker, name, gains: gained }) => element('li', { vars: { part: gained / most, owner: this.#palette.owner(worker) } },
      element('span', { title: name }, name), element('i'), element('b', {}, `+${gained}`)));
    if (gains.length > NAMED) bars.push(element('li', { class: 'rest' }, `and ${counted(gains.length - NAMED, 'more worker')}`));
    this.root.replaceChildren(
      element('h3', {}, 'If it died now'),
      element('p', {}, element('b', {}, counted(plan.moves.length, 'partition')), ` would move to ${counted(gains.length, 'worker')}, `,
        element('b', {}, counted(plan.unchanged, 'partition')), ' would stay', plan.bound_ms ? `; done within ${duration(plan.bound_ms)}.` : '.'),
      plan.note ? element('p', { class: 'quiet' }, plan.note) : null,
      element('ul', { class: 'gains' }, bars),
      element('div', { class: 'row' },
        this.#model.can('kill') ? element('button', { class: 'danger', id: 'kill-planned', onclick: this.#act.kill }, 'Kill it and compare') : null,
        element('button', { onclick: this.#act.drop }, 'Put the plan away')));
  }

  #showOutcome(plan) {
    if (!this.#live) this.#live = this.#makeOutcome(plan);
    const { kept, elsewhere, waiting } = this.#forecast.outcome();
    const { diedAt, settledAt, aside } = this.#forecast;
    const live = this.#live;
    const total = Math.max(1, plan.moves.length);
    live.bar.style.setProperty('--kept', kept / total);
    live.bar.style.setProperty('--elsewhere', elsewhere.length / total);
    say(live.kept, String(kept));
    say(live.elsewhere, String(elsewhere.length));
    say(live.waiting, String(waiting));
    say(live.aside, String(aside));
    const took = (settledAt ?? this.#model.clock.now_ms) - diedAt;
    const bound = plan.bound_ms ? `, bound ${duration(plan.bound_ms)}` : '';
    say(live.took, `${settledAt === null ? 'so far' : 'took'} ${duration(took)}${bound}`);
    live.took.className = plan.bound_ms && took > plan.bound_ms ? 'bad' : '';
    const word = settledAt === null ? 'It died. As planned so far:' : elsewhere.length === 0 ? 'It happened as planned.' : 'It happened, but not all as planned.';
    say(live.title, word);
    live.title.className = settledAt === null ? '' : elsewhere.length === 0 ? 'good' : 'warn';
    const key = elsewhere.map(({ index, owner }) => `${index}:${owner}`).join();
    if (live.others.dataset.key === key) return;
    live.others.dataset.key = key;
    live.others.replaceChildren(...elsewhere.slice(0, NAMED).map(({ index, to, owner }) => element('li', {},
      `${this.#model.names[index]} went to ${this.#model.nameOf(owner)}, not ${this.#model.nameOf(to)}`)));
  }

  #makeOutcome() {
    const [kept, elsewhere, waiting, aside] = [0, 0, 0, 0].map(() => element('b', {}, '0'));
    const live = { kept, elsewhere, waiting, aside, title: element('h3', {}), took: element('span', {}), others: element('ul', { class: 'others' }),
      bar: element('div', { class: 'outcome', 'aria-hidden': 'true' }, element('i', { class: 'kept' }), element('i', { class: 'elsewhere' })) };
    this.root.replaceChildren(live.title, live.bar,
      element('p', {}, kept, ' as planned · ', elsewhere, ' elsewhere · ', waiting, ' waiting · ', aside, ' other moves'),
      element('p', { class: 'quiet' }, live.took), live.others,
      element('div', { class: 'row' }, element('button', { onclick: this.#act.drop }, 'Put the plan away')));
    return live;
  }
}
