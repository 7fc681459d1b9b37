// What is wrong between the page and the cluster: no server, no token, or a store that is not seen.

import { byId, duration, element, instant, say } from './element.js';

const TELL_EVERY_MS = 250;

/** The banner that says why nothing new comes. */
export class Trouble {
  #model;
  #api;
  #gone = byId('gone');
  #old = byId('old');
  #again = () => {};
  #countdown = 0;
  #downSince = null;

  /** `again` tries at once. */
  constructor(model, api, again) {
    this.#model = model;
    this.#api = api;
    this.#again = again;
    model.addEventListener('snapshot', () => this.#look());
    model.addEventListener('delta', () => this.#look());
    setInterval(() => this.#tellAge(), 1000);
  }

  /** The server is gone, and asked again at a time. */
  gone({ error, again }) {
    const words = element('span', {});
    const lost = error.status ? error.message : 'The server is gone.';
    this.#show(words, element('button', { class: 'small', onclick: this.#again }, 'Try now'));
    const tell = () => say(words, `${lost} Trying again in ${Math.max(0, Math.ceil((again - performance.now()) / 1000))} s.`);
    this.#countdown = setInterval(tell, TELL_EVERY_MS);
    tell();
  }

  /** The server wants a token, or another one. */
  locked(error) {
    const field = element('input', { type: 'password', autocomplete: 'off', required: true, 'aria-label': 'Token', placeholder: 'token' });
    this.#show(element('span', {}, `${error.message}${/[.!]$/.test(error.message) ? '' : '.'}`),
      element('form', { id: 'unlock', onsubmit: (event) => {
        event.preventDefault();
        this.#api.token = field.value.trim();
        this.#again();
      } }, field, element('button', { class: 'small strong' }, 'Open')));
    field.focus();
  }

  /** The server answers. */
  over() {
    clearInterval(this.#countdown);
    this.#gone.hidden = true;
    document.body.classList.remove('lost');
  }

  #show(...children) {
    clearInterval(this.#countdown);
    this.#gone.replaceChildren(...children);
    this.#gone.hidden = false;
    document.body.classList.add('lost');
  }

  /** Where a live cluster's store does not answer, all that is shown is old. */
  #look() {
    const { source, store, clock, events } = this.#model;
    const down = source === 'observed' && store.state === 'down';
    if (!down) this.#downSince = null;
    else if (this.#downSince === null) {
      // Whoever comes later finds in the events when it was.
      const told = events.findLast(({ kind }) => kind === 'store');
      this.#downSince = told?.at_ms ?? clock.now_ms;
    }
    document.body.classList.toggle('stale', down);
    this.#old.hidden = !down;
    if (down) this.#tellAge();
  }

  #tellAge() {
    if (this.#downSince === null) return;
    const { store } = this.#model;
    const words = element('span', {}, store.trouble ?? '');
    const age = duration(Math.max(0, this.#model.now() - this.#downSince));
    const text = `The store has not answered since ${instant(this.#downSince)}, for ${age}. What is shown was seen before that.`;
    if (this.#old.firstChild?.textContent === text && this.#old.lastChild.textContent === words.textContent) return;
    this.#old.replaceChildren(element('b', {}, text), words);
  }
}
