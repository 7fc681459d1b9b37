// What can be done to the cluster, and how it went: every action passes here.

import { byId, element } from './element.js';

const TOAST_MS = 4500;
const ERROR_MS = 11_000;
const TOASTS = 4;

/** What another world begins with. */
const BEGINS = new Set(['reset', 'mode', 'settings']);

/** Who is cut off how. */
const ISOLATIONS = {
  full: 'reaches nothing',
  store: 'reaches what it works on, but not the store',
  outward: 'what it sends is lost; what others do it still sees',
  inward: 'what it sends arrives, and nothing comes back',
};

/** What can be done to a worker, in the order of a menu; `fits` says to which. */
export const WORKER_DEEDS = [
  { action: 'stop', label: 'Stop', about: 'leaves in order, handing over what it has', fits: (w) => w.alive },
  { action: 'kill', label: 'Kill', about: 'ends at once, as kill -9 does', danger: true, fits: (w) => w.alive },
  { action: 'restart', label: 'Start again', about: 'the same host comes back', fits: (w) => !w.alive },
  { action: 'pause', label: 'Pause', about: 'stands still, as after kill -STOP', fits: (w) => w.alive && !w.paused },
  { action: 'resume', label: 'Resume', about: 'goes on where it stood', fits: (w) => w.alive && w.paused },
  { action: 'isolate', label: 'Isolate', about: ISOLATIONS, choice: 'isolations', field: 'how', fits: (w) => w.alive && !w.isolated },
  { action: 'reconnect', label: 'Reconnect', about: 'no longer cut off', fits: (w) => w.alive && Boolean(w.isolated) },
  { action: 'slow', label: 'Slow hooks', about: 'starting and stopping takes long', fields: { on: true }, fits: (w) => w.alive && !w.slow },
  { action: 'slow', label: 'Fast hooks', about: 'starting and stopping takes as long as it should', fields: { on: false }, fits: (w) => w.alive && w.slow },
  { action: 'broken', label: 'Break hooks', about: 'starting a partition fails', fields: { on: true }, fits: (w) => w.alive && !w.broken },
  { action: 'broken', label: 'Mend hooks', about: 'starting a partition works again', fields: { on: false }, fits: (w) => w.alive && w.broken },
  { action: 'unhealthy', label: 'Fall ill', about: 'says that it is unhealthy', fields: { on: true }, fits: (w) => w.alive && w.health === 'healthy' },
  { action: 'unhealthy', label: 'Recover', about: 'says that it is healthy', fields: { on: false }, fits: (w) => w.alive && w.health !== 'healthy' },
  { action: 'cordon', label: 'Cordon', about: 'gets nothing more', fits: (w) => w.alive && !w.cordoned && !w.draining },
  { action: 'drain', label: 'Drain', about: 'gives away all it has', fits: (w) => w.alive && !w.draining },
  { action: 'uncordon', label: 'Uncordon', about: 'gets its share again', fits: (w) => w.alive && (w.cordoned || w.draining) },
];

/** Does things, and says how it went. */
export class Deeds {
  #api;
  #model;
  #yaml = null;

  constructor(api, model) {
    this.#api = api;
    this.#model = model;
  }

  /** Does it; answers with what the server says, or with nothing if it refused. */
  async act(action, fields) {
    const held = !this.#model.clock.running;
    const reply = await this.#told(() => this.#api.act(action, fields));
    // Who begins a new world wants to see it go, even if time was held in the one before.
    if (reply && held && BEGINS.has(action) && this.#model.can('run')) await this.#told(() => this.#api.act('run'));
    return reply;
  }

  /** Starts a scenario that is built in. */
  start(name) {
    this.#yaml = null;
    return this.#told(() => this.#api.post(`scenarios/${encodeURIComponent(name)}/start`, {}));
  }

  /** Checks and starts a scenario of one's own. */
  upload(yaml) {
    this.#yaml = yaml;
    return this.#told(() => this.#api.post('scenarios', { yaml }));
  }

  /** Starts the scenario that runs once more. */
  again(name) {
    return this.#yaml === null ? this.start(name) : this.upload(this.#yaml);
  }

  /** What fits a worker as it is, of what may be done here; a choice becomes a deed for each. */
  for(worker) {
    const deeds = [];
    for (const deed of WORKER_DEEDS) {
      if (!this.#model.can(deed.action) || !deed.fits(worker)) continue;
      const choices = deed.choice ? this.#model.choices[deed.choice] ?? [] : [null];
      for (const choice of choices) {
        const fields = { worker: worker.number, ...deed.fields };
        if (choice !== null) fields[deed.field] = choice;
        const about = choice === null ? deed.about : deed.about[choice] ?? 'cut off';
        const label = choice === null ? deed.label : `${deed.label}: ${choice}`;
        deeds.push({ ...deed, label, about, run: () => this.act(deed.action, fields) });
      }
    }
    return deeds;
  }

  async #told(request) {
    try {
      const reply = await request();
      if (reply.done) toast(reply.done);
      return reply;
    } catch (error) {
      toast(error.message, 'bad');
      return null;
    }
  }
}

/** A short message that goes by itself; a bad one stays longer, and can be sent away. */
export function toast(text, kind = 'good') {
  const shelf = byId('toasts');
  const node = element('div', { class: `toast ${kind}`, role: kind === 'bad' ? 'alert' : null },
    element('span', {}, text),
    element('button', { 'aria-label': 'Dismiss', onclick: () => node.remove() }, '×'));
  shelf.append(node);
  // What lies behind an open dialog is neither seen nor reached.
  const dialog = document.querySelector('dialog[open]');
  if (dialog && shelf.parentElement !== dialog) {
    dialog.append(shelf);
    dialog.addEventListener('close', () => document.body.append(shelf), { once: true });
  }
  while (shelf.children.length > TOASTS) shelf.firstChild.remove();
  setTimeout(() => node.remove(), kind === 'bad' ? ERROR_MS : TOAST_MS);
}
