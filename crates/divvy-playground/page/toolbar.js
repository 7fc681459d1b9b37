// The toolbar: time, mode, store and what the world is made of. It shows only what may be done here.

import { byId, duration, element, instant, say } from './element.js';

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 25, 50, 100];
const STEPS_MS = [10, 100, 500, 1000, 5000, 30_000];
/** Where it is not a world of its own, one should know. */
const SOURCES = {
  store: () => 'real store, real time',
  observed: () => 'live cluster, read only',
  replayed: ({ settings }) => (settings.seed === null || settings.seed === undefined ? 'replay' : `replay of seed ${settings.seed}`),
};
const OVERLAP = 'No lease keeps owners apart: a partition may run on its old and its new worker at once, ' +
  'and what both do at that time may be done twice.';
const CLOCK_EVERY_MS = 100;

/** Emits `scenarios` when the gallery is asked for. */
export class Toolbar extends EventTarget {
  #model;
  #deeds;
  #parts = { source: element('span', { id: 'source', class: 'badge' }) };
  #clockAt = 0;

  constructor(model, deeds) {
    super();
    this.#model = model;
    this.#deeds = deeds;
    byId('tools').append(this.#time(), this.#mode(), this.#store(), this.#world(), this.#scenarios(), this.#parts.source);
    byId('add-quick').addEventListener('click', () => deeds.act('add', { count: 1 }));
    model.addEventListener('snapshot', () => this.#show());
    model.addEventListener('delta', () => this.#show());
    foldMenus();
    requestAnimationFrame((now) => this.#tick(now));
  }

  /** Runs or holds, whichever it does not do now. */
  toggle() {
    const action = this.#model.clock.running ? 'hold' : 'run';
    if (this.#model.can(action)) this.#deeds.act(action);
  }

  /** Goes on by one step. */
  step() {
    if (this.#model.can('step')) this.#deeds.act('step', { ms: Number(this.#parts.stepBy.value) });
  }

  /** One speed up or down. */
  hasten(by) {
    if (!this.#model.can('speed')) return;
    const { speed } = this.#model.clock;
    const next = by > 0 ? SPEEDS.find((each) => each > speed) : SPEEDS.findLast((each) => each < speed);
    if (next) this.#deeds.act('speed', { speed: next });
  }

  #time() {
    const parts = this.#parts;
    parts.run = element('button', { class: 'run', data: { action: 'hold' }, onclick: () => this.toggle() });
    parts.step = element('button', { class: 'small', data: { action: 'step' }, title: 'One step (.)', onclick: () => this.step() }, 'step');
    parts.stepBy = element('select', { 'aria-label': 'Length of a step', data: { action: 'step' } },
      STEPS_MS.map((ms) => element('option', { value: ms }, duration(ms))));
    parts.stepBy.value = '100';
    parts.speed = element('select', { 'aria-label': 'Speed', title: 'Speed (+ and −)', data: { action: 'speed' },
      onchange: () => this.#deeds.act('speed', { speed: Number(parts.speed.value) }) },
    SPEEDS.map((speed) => element('option', { value: speed }, `${speed}×`)));
    parts.clock = element('output', { class: 'time', title: 'Time in the world', 'aria-label': 'Time in the world' });
    parts.lag = element('span', { id: 'lag', class: 'badge', hidden: true, title: 'This world is too large to be calculated so fast: its time passes more slowly' }, 'slower than its clock');
    return element('div', { class: 'group', role: 'group', 'aria-label': 'Time' },
      parts.run, parts.clock, parts.lag, parts.speed, parts.step, parts.stepBy);
  }

  #mode() {
    this.#parts.modes = element('div', { class: 'segments', role: 'group', 'aria-label': 'Mode' });
    this.#parts.overlap = element('span', { id: 'overlap', class: 'badge odd', title: OVERLAP, tabindex: 0, hidden: true }, 'overlap allowed');
    return element('div', { class: 'group' }, this.#parts.modes, this.#parts.overlap);
  }

  #store() {
    const act = (action, fields) => (event) => {
      event.target.closest('details').open = false;
      this.#deeds.act(action, fields);
    };
    const parts = this.#parts;
    parts.store = element('summary', { class: 'small store' });
    const item = (action, fields, label, about, danger) =>
      element('button', { data: { action }, class: danger ? 'danger' : null, onclick: act(action, fields) }, element('b', {}, label), element('small', {}, about));
    parts.storeItems = element('div', { class: 'sheet' },
      item('store', { state: 'up' }, 'Up', 'answers, and fast'),
      item('store', { state: 'slow' }, 'Slow', 'answers late'),
      item('store', { state: 'down' }, 'Down', 'does not answer', true),
      parts.announced = item('amnesia', { announced: true }, 'Amnesia', 'forgets, and is known as a new one', true),
      item('amnesia', { announced: false }, 'Silent amnesia', 'forgets, and nobody is told', true),
      item('refresh', {}, 'Refresh', 'asks for the partitions again'));
    parts.storeMenu = element('details', { class: 'menu group' }, parts.store, parts.storeItems);
    parts.storeSaid = element('span', { class: 'small store said' });
    return element('div', { class: 'group' }, parts.storeMenu, parts.storeSaid);
  }

  #world() {
    const parts = this.#parts;
    const form = element('div', { class: 'sheet forms' },
      this.#addForm(), this.#partitionsForm(), this.#settingsForm(), this.#resetForm());
    parts.world = element('details', { class: 'menu group', id: 'world' }, element('summary', { class: 'small' }, 'world'), form);
    return parts.world;
  }

  #addForm() {
    const fields = {
      count: number('how many', 1, 200, 1),
      weight: number('weight', 0, 1000, 1, 'any'),
      zone: element('input', { placeholder: 'none', maxlength: 64, 'aria-label': 'Zone' }),
    };
    return form('add', 'Add workers', [['how many', fields.count], ['weight', fields.weight], ['zone', fields.zone]], 'Add', () => {
      const wish = { count: fields.count.valueAsNumber, weight: fields.weight.valueAsNumber };
      if (fields.zone.value.trim()) wish.zone = fields.zone.value.trim();
      this.#deeds.act('add', wish);
    });
  }

  #partitionsForm() {
    const many = this.#parts.many = number('how many', 1, 20_000, 256);
    return form('partitions', 'Partitions', [['how many', many]], 'Set', () =>
      this.#deeds.act('partitions', { count: many.valueAsNumber }));
  }

  #settingsForm() {
    const parts = this.#parts;
    parts.strategy = element('select', { 'aria-label': 'Strategy' });
    parts.preset = element('select', { 'aria-label': 'Preset' });
    parts.exclusive = element('input', { type: 'checkbox' });
    return form('settings', 'Settings', [['strategy', parts.strategy], ['timings', parts.preset], ['exclusive', parts.exclusive]], 'Apply', () => {
      const { settings } = this.#model;
      const wish = {};
      if (parts.strategy.value !== settings.strategy) wish.strategy = parts.strategy.value;
      if (parts.preset.value !== settings.preset) wish.preset = parts.preset.value;
      if (parts.exclusive.checked !== settings.exclusive) wish.exclusive = parts.exclusive.checked;
      if (Object.keys(wish).length > 0) this.#deeds.act('settings', wish);
    });
  }

  #resetForm() {
    const parts = this.#parts;
    parts.resetWorkers = number('workers', 1, 500, 8);
    parts.resetPartitions = number('partitions', 1, 20_000, 256);
    parts.resetSeed = number('seed', 0, Number.MAX_SAFE_INTEGER, 7);
    return form('reset', 'A new world', [['workers', parts.resetWorkers], ['partitions', parts.resetPartitions], ['seed', parts.resetSeed]], 'Begin', () =>
      this.#deeds.act('reset', {
        workers: parts.resetWorkers.valueAsNumber,
        partitions: parts.resetPartitions.valueAsNumber,
        seed: parts.resetSeed.valueAsNumber,
      }));
  }

  #scenarios() {
    return element('button', { id: 'open-scenarios', class: 'small strong', title: 'Scenarios (s)',
      onclick: () => this.dispatchEvent(new Event('scenarios')) }, 'scenarios');
  }

  #show() {
    const model = this.#model;
    const { clock, settings, choices, store } = model;
    const parts = this.#parts;
    for (const node of document.querySelectorAll('[data-action]')) {
      const hidden = !model.can(node.dataset.action);
      if (node.hidden !== hidden) node.hidden = hidden;
    }
    parts.world.hidden = !['add', 'partitions', 'settings', 'reset'].some((action) => model.can(action));
    // A scenario needs a world, and a real store says by itself that it forgot.
    const real = model.source === 'store';
    byId('open-scenarios').hidden = real || (!model.can('reset') && model.source !== 'simulated');
    parts.announced.hidden ||= real;
    parts.resetSeed.parentElement.hidden = real;
    parts.run.classList.toggle('held', !clock.running);
    const label = clock.running ? 'Hold time (space)' : 'Let time run (space)';
    if (parts.run.title !== label) {
      parts.run.title = label;
      parts.run.setAttribute('aria-label', label);
    }
    keep(parts.speed, nearest(clock.speed));
    parts.lag.hidden = !clock.lagging;
    // A menu with nothing in it is none.
    const acts = ['store', 'amnesia', 'refresh'].some((action) => model.can(action));
    parts.storeMenu.hidden = !acts;
    parts.storeSaid.hidden = acts;
    const shown = acts ? parts.store : parts.storeSaid;
    say(shown, `store ${store.state}`);
    shown.className = `small store ${store.state}${acts ? '' : ' said'}`;
    shown.title = store.trouble ?? (store.latency_ms === null ? '' : `answers in ${store.latency_ms} ms; incarnation ${store.incarnation ?? 'unknown'}`);
    say(parts.source, SOURCES[model.source]?.(model) ?? '');
    parts.source.hidden = !SOURCES[model.source];
    parts.overlap.hidden = settings.exclusive !== false;
    this.#showModes();
    options(parts.strategy, choices.strategies, settings.strategy);
    options(parts.preset, choices.presets, settings.preset);
    // Where a form is open, what is being typed stays.
    if (!parts.world.open) {
      keep(parts.strategy, settings.strategy);
      keep(parts.preset, settings.preset);
      parts.exclusive.checked = settings.exclusive !== false;
      keep(parts.many, model.names.length);
      keep(parts.resetPartitions, model.names.length);
      keep(parts.resetSeed, settings.seed ?? 1);
    }
  }

  #showModes() {
    const { modes } = this.#parts;
    const { choices, mode } = this.#model;
    const may = this.#model.can('mode');
    const wanted = may ? choices.modes ?? [] : [mode];
    if (modes.dataset.of !== wanted.join()) {
      modes.dataset.of = wanted.join();
      modes.replaceChildren(...wanted.map((each) => element('button', {
        data: { mode: each },
        title: each === 'leader' ? 'One worker decides for all' : 'Each worker takes leases by itself',
        disabled: !may,
        onclick: () => each !== this.#model.mode && this.#deeds.act('mode', { mode: each }),
      }, each)));
    }
    for (const button of modes.children) button.setAttribute('aria-pressed', String(button.dataset.mode === mode));
  }

  #tick(now) {
    if (now - this.#clockAt > CLOCK_EVERY_MS) {
      this.#clockAt = now;
      say(this.#parts.clock, instant(this.#model.now()));
    }
    requestAnimationFrame((next) => this.#tick(next));
  }
}

const nearest = (speed) => SPEEDS.reduce((best, each) => (Math.abs(each - speed) < Math.abs(best - speed) ? each : best));

function keep(control, value) {
  if (document.activeElement !== control && control.value !== String(value)) control.value = String(value);
}

function options(select, values, chosen) {
  const key = (values ?? []).join();
  if (select.dataset.of === key) return;
  select.dataset.of = key;
  select.replaceChildren(...(values ?? []).map((value) => element('option', { value }, value)));
  select.value = chosen;
}

const number = (label, min, max, value, step = 1) =>
  element('input', { type: 'number', min, max, value, step, required: true, 'aria-label': label });

function form(action, title, rows, verb, submit) {
  return element('form', { data: { action }, 'aria-label': title, onsubmit: (event) => {
    event.preventDefault();
    submit();
    const menu = event.target.closest('details');
    if (menu) menu.open = false;
  } }, element('h3', {}, title), rows.map(([label, control]) => element('label', {}, label, control)),
  element('button', { class: 'small strong' }, verb));
}

/** A menu closes by a click elsewhere, by Escape, or when another opens. */
function foldMenus() {
  const fold = (but) => {
    for (const menu of document.querySelectorAll('details.menu[open]')) if (menu !== but) menu.open = false;
  };
  document.addEventListener('pointerdown', (event) => fold(event.target.closest('details.menu')));
  document.addEventListener('keydown', (event) => {
    const open = document.querySelector('details.menu[open]');
    if (event.key !== 'Escape' || !open) return;
    open.open = false;
    open.querySelector('summary').focus();
    event.stopImmediatePropagation();
  });
}
