// A worker in detail: its numbers, what it has, what can be done with it, and what if it dies.

import { badgesOf, conditionOf, leaseLeft } from './condition.js';
import { count, element, figure, say } from './element.js';
import { Forecast, ForecastView, canForetell } from './forecast.js';
import { toast } from './deeds.js';

const ASK_AGAIN_MS = 1200;
const LISTED = 400;

/** The pane of a worker. Emits `partition` (a name), and `ghosts` (`{plan, happened}`, or nothing). */
export class WorkerDetail extends EventTarget {
  root = element('div', { class: 'detail worker-detail' });
  title;
  #context;
  #number;
  #facts = {};
  #explain = element('p', { class: 'why' });
  #list = element('ul', { class: 'names' });
  #deeds = element('div', { class: 'deeds' });
  #forms = element('div', { class: 'forms' });
  #forecast;
  #view;
  #askedAt = 0;
  #asking = false;

  constructor(context, number) {
    super();
    this.#context = context;
    this.#number = number;
    this.title = context.model.nameOf(number);
    this.#forecast = new Forecast(context.model, context.api, number);
    this.#view = new ForecastView(context.model, context.palette, this.#forecast, {
      ask: () => this.whatIf(),
      kill: () => this.#kill(),
      drop: () => this.#drop(),
    });
    this.#forecast.addEventListener('change', () => this.#view.show());
    this.#makeForms();
    this.root.append(this.#explain, this.#makeFacts(), this.#view.root, this.#deeds, this.#forms,
      element('h3', {}, 'Has'), this.#list);
    this.#show();
    this.#ask();
  }

  /** Shows the plan for its death, and ghosts on the map. */
  async whatIf() {
    if (!canForetell(this.#context.model, this.#number)) return;
    try {
      await this.#forecast.ask();
      this.#emit('ghosts', { plan: this.#forecast.planned });
    } catch (error) {
      toast(error.message, 'bad');
    }
  }

  /** The world changed. */
  follow(detail) {
    const died = this.#forecast.diedAt;
    this.#forecast.follow(detail);
    if (died === null && this.#forecast.diedAt !== null) this.#emit('ghosts', { plan: this.#forecast.planned, happened: true });
    this.#show();
    if (performance.now() - this.#askedAt > ASK_AGAIN_MS) this.#ask();
  }

  /** Time passes between deltas, too. */
  tick() {
    const worker = this.#context.model.workers.get(this.#number);
    if (!worker) return;
    const { model } = this.#context;
    const known = worker.alive && Number.isFinite(worker.lease_left_ms);
    const none = model.settings.exclusive === false ? 'none: overlap' : '–';
    say(this.#facts.lease, known ? leaseText(leaseLeft(worker, model.now()), worker.lease_ms) : none);
  }

  #makeFacts() {
    const list = element('dl', { class: 'facts' });
    for (const [key, label] of [['state', 'state'], ['load', 'load'], ['share', 'share'], ['owned', 'partitions'], ['lease', 'lease'], ['id', 'id'], ['weight', 'weight'], ['zone', 'zone']]) {
      this.#facts[key] = element('dd', {});
      list.append(element('div', {}, element('dt', {}, label), this.#facts[key]));
    }
    return list;
  }

  #show() {
    const { model, deeds } = this.#context;
    const worker = model.workers.get(this.#number);
    if (!worker) {
      say(this.#facts.state, 'gone');
      this.#deeds.replaceChildren();
      this.#forms.hidden = true;
      this.#view.follow();
      return;
    }
    const unusual = badgesOf(worker, model).filter(({ kind }) => kind !== 'plain').map(({ text }) => text);
    say(this.#facts.state, [conditionOf(worker, model).text, worker.leader && 'leads', ...unusual].filter(Boolean).join(', '));
    say(this.#facts.load, figure(worker.load));
    say(this.#facts.share, figure(worker.share));
    say(this.#facts.owned, figure(worker.owned));
    say(this.#facts.id, worker.id ?? '–');
    say(this.#facts.weight, figure(worker.weight));
    say(this.#facts.zone, worker.zone ?? '–');
    this.tick();
    const fitting = deeds.for(worker);
    const key = fitting.map((deed) => deed.label).join();
    if (this.#deeds.dataset.key !== key) {
      this.#deeds.dataset.key = key;
      this.#deeds.replaceChildren(...fitting.map((deed) => element('button', {
        title: deed.about, class: deed.danger ? 'danger' : null, onclick: deed.run }, deed.label)));
    }
    this.#forms.hidden = !worker.alive;
    this.#view.follow();
  }

  #makeForms() {
    const { model, deeds } = this.#context;
    const worker = model.workers.get(this.#number);
    const weight = element('input', { type: 'number', min: 0, max: 1000, step: 'any', required: true, value: worker?.weight ?? 1, 'aria-label': 'Weight' });
    const zone = element('input', { maxlength: 64, value: worker?.zone ?? '', placeholder: 'none', 'aria-label': 'Zone' });
    const row = (action, label, control, run) => element('form', { data: { action }, hidden: !model.can(action), onsubmit: (event) => {
      event.preventDefault();
      run();
    } }, element('label', {}, label, control), element('button', { class: 'small' }, 'set'));
    this.#forms.append(
      row('weight', 'weight', weight, () => deeds.act('weight', { worker: this.#number, weight: weight.valueAsNumber })),
      row('zone', 'zone', zone, () => deeds.act('zone', { worker: this.#number, zone: zone.value.trim() || null })));
  }

  async #kill() {
    try {
      // What is compared is the plan of this moment, not of when somebody began to read.
      await this.#forecast.ask();
      this.#emit('ghosts', { plan: this.#forecast.planned });
    } catch (error) {
      return toast(error.message, 'bad');
    }
    await this.#context.deeds.act('kill', { worker: this.#number });
  }

  #drop() {
    this.#forecast.plan = null;
    this.#forecast.diedAt = null;
    this.#view.show();
    this.#emit('ghosts', null);
  }

  /** What only the server knows: the sentence and the names. */
  async #ask() {
    if (this.#asking) return;
    this.#asking = true;
    this.#askedAt = performance.now();
    try {
      const { explain, partitions } = await this.#context.api.get(`workers/${this.#number}`);
      say(this.#explain, explain ?? '');
      this.#showNames(partitions);
    } catch (error) {
      say(this.#explain, error.status === 404 ? 'It is gone for good.' : error.message);
    } finally {
      this.#asking = false;
    }
  }

  #showNames(names) {
    const key = names.join();
    if (this.#list.dataset.key === key) return;
    this.#list.dataset.key = key;
    const items = names.slice(0, LISTED).map((name) => element('li', {},
      element('button', { class: 'link', onclick: () => this.#emit('partition', name) }, name)));
    if (names.length > LISTED) items.push(element('li', { class: 'quiet' }, `and ${count(names.length - LISTED)} more`));
    this.#list.replaceChildren(...(items.length ? items : [element('li', { class: 'quiet' }, 'nothing')]));
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** What is left of a lease, in one unit so that it does not jump. */
const leaseText = (left, whole) => (whole === null
  ? `${Math.round(left)} ms left`
  : whole < 10_000
  ? `${Math.round(left)} of ${whole} ms`
  : `${(left / 1000).toFixed(1)} of ${Math.round(whole / 1000)} s`);
