// The page: makes its parts, and tells each what the others picked.

import { Api, Follower } from './connection.js';
import { WorkerCards } from './cards.js';
import { Charts } from './chart.js';
import { Deeds } from './deeds.js';
import { byId, element, say } from './element.js';
import { PartitionMap } from './map.js';
import { WorkerMenu } from './menu.js';
import { Model } from './model.js';
import { Palette } from './palette.js';
import { Pane } from './pane.js';
import { Gallery, ScenarioBanner } from './scenarios.js';
import { Shortcuts } from './shortcuts.js';
import { Strip } from './strip.js';
import { PartitionTable } from './table.js';
import { Timeline } from './timeline.js';
import { Toolbar } from './toolbar.js';

const api = new Api();
const model = new Model();
const palette = new Palette();
const deeds = new Deeds(api, model);
const toolbar = new Toolbar(model, deeds);
const strip = new Strip(model, api);
const cards = new WorkerCards(model, palette, new WorkerMenu(deeds));
const map = new PartitionMap(model, palette);
const table = new PartitionTable(model);
const timeline = new Timeline(model, api);
const pane = new Pane({ api, model, palette, deeds });
const gallery = new Gallery(api, deeds);
new Charts(model, palette);
new ScenarioBanner(model, deeds);

pane.addEventListener('picked', ({ detail }) => {
  map.pick(detail);
  cards.pick(detail.worker ?? null);
});
pane.addEventListener('ghosts', ({ detail }) => map.ghost(detail?.plan ?? null, detail?.happened));
map.addEventListener('partition', ({ detail }) => pane.partition(model.names[detail]));
map.addEventListener('worker', ({ detail }) => pane.worker(detail));
map.addEventListener('nothing', () => pane.close());
table.addEventListener('partition', ({ detail }) => pane.partition(detail));
cards.addEventListener('worker', ({ detail }) => pane.worker(detail));
timeline.addEventListener('worker', ({ detail }) => model.workers.has(detail) && pane.worker(detail));
timeline.addEventListener('partition', ({ detail }) => model.indexOf(detail) !== undefined && pane.partition(detail));
toolbar.addEventListener('scenarios', () => gallery.open());

const ARRANGEMENTS = [...byId('arrange').children];

function arrange(kind) {
  for (const button of ARRANGEMENTS) button.setAttribute('aria-pressed', String(button.dataset.arrange === kind));
  byId('cells-focus').hidden = kind === 'table';
  byId('legend').hidden = kind === 'table';
  map.arrange(kind);
  table.show(kind === 'table');
}

for (const button of ARRANGEMENTS) button.addEventListener('click', () => arrange(button.dataset.arrange));
byId('theme').addEventListener('click', () => palette.turn());

/** What a key does to the worker that is shown, if one is. */
function withWorker(run) {
  if (pane.shown?.kind === 'worker') run(pane.shown.key);
}

new Shortcuts([
  { keys: [' '], about: 'run or hold time', run: () => toolbar.toggle() },
  { keys: ['.'], about: 'one step', run: () => toolbar.step() },
  { keys: ['+', '='], about: 'faster', run: () => toolbar.hasten(1) },
  { keys: ['-'], about: 'slower', run: () => toolbar.hasten(-1) },
  { keys: ['a'], about: 'add a worker', run: () => model.can('add') && deeds.act('add', { count: 1 }) },
  { keys: ['w'], about: 'what if the worker that is shown dies', run: () => withWorker(() => pane.whatIf()) },
  { keys: ['k'], about: 'kill the worker that is shown', run: () => withWorker((worker) => model.can('kill') && deeds.act('kill', { worker })) },
  { keys: ['g'], about: 'partitions by owner or in order', run: () => arrange(map.kind === 'owner' ? 'order' : 'owner') },
  { keys: ['p'], about: 'to the partitions', run: () => map.focus() },
  { keys: ['c'], about: 'to the workers', run: () => cards.focus() },
  { keys: ['/'], about: 'search events', run: () => timeline.focus() },
  { keys: ['s'], about: 'scenarios', run: () => byId('open-scenarios').hidden || gallery.open() },
  { keys: ['i'], about: 'what is checked, and what broke', run: () => strip.open() },
  { keys: ['t'], about: 'light or dark', run: () => palette.turn() },
  { keys: ['Escape'], about: 'close', run: () => pane.close() },
  { keys: ['?'], about: 'this sheet', run: () => byId('help').click() },
]);

const gone = byId('gone');
let countdown = 0;

function showGone({ error, again }) {
  const words = element('span', {});
  const retry = element('button', { class: 'small', onclick: () => follower.hurry() }, 'Try now');
  const lost = error.status ? error.message : 'The server is gone.';
  gone.replaceChildren(words, retry);
  gone.hidden = false;
  document.body.classList.add('lost');
  const tell = () => say(words, `${lost} Trying again in ${Math.max(0, Math.ceil((again - performance.now()) / 1000))} s.`);
  clearInterval(countdown);
  countdown = setInterval(tell, 250);
  tell();
}

function showBack() {
  clearInterval(countdown);
  gone.hidden = true;
  document.body.classList.remove('lost');
}

const follower = new Follower(api, {
  onsnapshot: (snapshot) => {
    model.load(snapshot);
    document.body.dataset.source = model.source;
    document.body.dataset.run = model.run;
  },
  ondelta: (delta) => model.apply(delta),
  ongone: showGone,
  onback: showBack,
});
follower.follow();
