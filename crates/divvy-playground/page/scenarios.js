// Scenarios: a gallery to start one from, and a banner with how its goal stands.

import { byId, duration, element, figure, say } from './element.js';
import { toast } from './deeds.js';

const LARGEST_FILE = 256 * 1024;

/** The gallery. */
export class Gallery {
  #api;
  #deeds;
  #dialog = byId('gallery');
  #list = element('ul', { class: 'stories' });
  #search = element('input', { type: 'search', placeholder: 'search', 'aria-label': 'Search scenarios' });
  #file = element('input', { type: 'file', accept: '.yaml,.yml,text/yaml', 'aria-label': 'A scenario as a YAML file' });

  constructor(api, deeds) {
    this.#api = api;
    this.#deeds = deeds;
    const close = element('button', { class: 'icon', 'aria-label': 'Close', onclick: () => this.#dialog.close() }, '×');
    this.#search.addEventListener('input', () => this.#filter());
    this.#file.addEventListener('change', () => this.#upload(this.#file.files[0]));
    this.#dialog.addEventListener('dragover', (event) => event.preventDefault());
    this.#dialog.addEventListener('drop', (event) => {
      event.preventDefault();
      this.#upload(event.dataTransfer.files[0]);
    });
    this.#dialog.append(
      element('header', { class: 'head' }, element('h2', { id: 'gallery-title' }, 'Scenarios'), this.#search, element('div', { class: 'fill' }), close),
      this.#list,
      element('footer', {}, element('label', {}, 'One of your own: ', this.#file)));
  }

  async open() {
    if (this.#dialog.open) return;
    this.#dialog.showModal();
    try {
      const { scenarios } = await this.#api.get('scenarios');
      this.#list.replaceChildren(...scenarios.map((scenario) => this.#story(scenario)));
      this.#filter();
    } catch (error) {
      this.#dialog.close();
      toast(error.message, 'bad');
    }
  }

  #story({ name, title, about, mode, goal, lasts_ms }) {
    const start = async () => {
      this.#dialog.close();
      await this.#deeds.start(name);
    };
    return element('li', { data: { scenario: name, words: `${name} ${title} ${about} ${goal}`.toLowerCase() } },
      element('h3', {}, title),
      element('p', {}, about),
      element('p', { class: 'goal' }, element('b', {}, 'Goal '), goal),
      element('footer', {}, element('small', {}, `${mode ? `${mode} mode · ` : ''}${duration(lasts_ms)}`),
        element('button', { class: 'small strong', 'aria-label': `Start ${title}`, onclick: start }, 'Start')));
  }

  #filter() {
    const words = this.#search.value.trim().toLowerCase();
    for (const story of this.#list.children) story.hidden = words !== '' && !story.dataset.words.includes(words);
  }

  async #upload(file) {
    if (!file) return;
    if (file.size > LARGEST_FILE) return toast(`${file.name}: ${file.size} bytes: at most ${LARGEST_FILE}`, 'bad');
    const reply = await this.#deeds.upload(await file.text());
    this.#file.value = '';
    if (reply) this.#dialog.close();
  }
}

/** What runs, how far it is, and each number of its goal against its bound. */
export class ScenarioBanner {
  #model;
  #deeds;
  #root = byId('scenario');
  #parts = null;
  #dismissed = null;

  constructor(model, deeds) {
    this.#model = model;
    this.#deeds = deeds;
    model.addEventListener('snapshot', () => this.#show());
    model.addEventListener('delta', ({ detail }) => detail.scenario && this.#show());
  }

  #show() {
    const { scenario, run } = this.#model;
    this.#root.hidden = !scenario || this.#dismissed === `${run} ${scenario.name}`;
    if (this.#root.hidden) return;
    if (this.#parts?.run !== run || this.#parts?.name !== scenario.name) this.#make(scenario, run);
    const { state, progress, at_ms, lasts_ms, numbers } = scenario;
    this.#root.className = `banner scenario ${state}`;
    const parts = this.#parts;
    say(parts.state, { running: 'running', passed: 'passed', failed: 'failed' }[state] ?? state);
    say(parts.time, `${duration(at_ms)} of ${duration(lasts_ms)}`);
    parts.bar.value = progress;
    say(parts.reason, scenario.reason ?? '');
    parts.reason.hidden = !scenario.reason;
    const key = JSON.stringify(numbers);
    if (parts.key === key) return;
    parts.key = key;
    parts.numbers.replaceChildren(...numbers.map(({ name, measured, bound, rule, met }) => element('li', { class: met ? 'met' : 'unmet' },
      element('span', {}, name.replaceAll('_', ' ')), element('b', {}, figure(measured)), element('small', {}, `${(rule ?? 'bound').replace('_', ' ')} ${figure(bound)}`),
      element('span', { class: 'unseen' }, met ? ', met' : ', not met'))));
  }

  #make({ name, title, goal }, run) {
    const parts = {
      run,
      name,
      state: element('span', { class: 'verdict', role: 'status' }),
      time: element('small', {}),
      bar: element('progress', { max: 1, 'aria-label': 'Progress' }),
      numbers: element('ul', { class: 'numbers' }),
      reason: element('p', { class: 'reason' }),
    };
    const again = element('button', { class: 'small', onclick: () => this.#deeds.again(name) }, 'Again');
    const close = element('button', { class: 'icon', 'aria-label': 'Put the scenario away', onclick: () => {
      this.#dismissed = `${run} ${name}`;
      this.#show();
    } }, '×');
    this.#parts = parts;
    this.#root.replaceChildren(
      element('div', { class: 'what' }, parts.state, element('b', {}, title), element('span', { class: 'goal' }, goal)),
      parts.reason, parts.numbers, element('div', { class: 'how' }, parts.bar, parts.time, again, close));
  }
}
