// The page: makes its parts, and tells each what the others picked.

import { Api, Follower } from './connection.js';
import { WorkerCards } from './cards.js';
import { Charts } from './chart.js';
import { Checks } from './checks.js';
import { Deeds } from './deeds.js';
import { byId } from './element.js';
import { canForetell } from './forecast.js';
import { Intro } from './intro.js';
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
import { Trouble } from './trouble.js';

const api = new Api();
const model = new Model();
const palette = new Palette();
const deeds = new Deeds(api, model);
const toolbar = new Toolbar(model, deeds);
const checks = new Checks(model, api);
const cards = new WorkerCards(model, palette, new WorkerMenu(deeds));
const map = new PartitionMap(model, palette);
const table = new PartitionTable(model);
const timeline = new Timeline(model, api);
const pane = new Pane({ api, model, palette, deeds });
const gallery = new Gallery(api, deeds);
const intro = new Intro(model, deeds);
new Strip(model);
new Charts(model, palette);
new ScenarioBanner(model, deeds);

pane.addEventListener('picked', ({ detail }) => {
  map.pick(detail);
  cards.pick(detail.worker ?? null);
});
pane.addEventListener('ghosts', ({ detail }) => map.ghost(detail?.plan ?? null, detail?.happened));
map.addEventListener('partition', ({ detail: { index, byKey } }) => pane.partition(model.names[index], byKey));
map.addEventListener('worker', ({ detail }) => pane.worker(detail));
map.addEventListener('nothing', () => pane.close());
table.addEventListener('partition', ({ detail: { name, byKey } }) => pane.partition(name, byKey));
cards.addEventListener('worker', ({ detail: { number, byKey } }) => pane.worker(number, byKey));
timeline.addEventListener('worker', ({ detail: { number, byKey } }) => model.workers.has(number) && pane.worker(number, byKey));
timeline.addEventListener('partition', ({ detail: { name, byKey } }) => model.indexOf(name) !== undefined && pane.partition(name, byKey));
toolbar.addEventListener('scenarios', () => gallery.open());
intro.addEventListener('scenarios', () => gallery.open());
intro.addEventListener('worker', ({ detail }) => {
  pane.worker(detail);
  pane.whatIf();
});
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

/** The worker that is shown, if one is. */
const shownWorker = () => (pane.shown?.kind === 'worker' ? pane.shown.key : null);
const may = (...actions) => () => actions.some((action) => model.can(action));

new Shortcuts([
  { keys: [' '], about: 'run or hold time', can: may('run', 'hold'), run: () => toolbar.toggle() },
  { keys: ['.'], about: 'one step', can: may('step'), run: () => toolbar.step() },
  { keys: ['+', '='], about: 'faster', can: may('speed'), run: () => toolbar.hasten(1) },
  { keys: ['-'], about: 'slower', can: may('speed'), run: () => toolbar.hasten(-1) },
  { keys: ['a'], about: 'add a worker', can: may('add'), run: () => deeds.act('add', { count: 1 }) },
  { keys: ['w'], about: 'what if the worker that is shown dies', can: () => model.source !== 'observed',
    run: () => canForetell(model, shownWorker()) && pane.whatIf() },
  { keys: ['k'], about: 'kill the worker that is shown', can: may('kill'),
    run: () => model.workers.get(shownWorker())?.alive && deeds.act('kill', { worker: shownWorker() }) },
  { keys: ['g'], about: 'partitions by owner or in order', run: () => arrange(map.kind === 'owner' ? 'order' : 'owner') },
  { keys: ['p'], about: 'to the partitions', run: () => map.focus() },
  { keys: ['c'], about: 'to the workers', run: () => cards.focus() },
  { keys: ['/'], about: 'search events', run: () => timeline.focus() },
  { keys: ['s'], about: 'scenarios', can: () => !byId('open-scenarios').hidden, run: () => gallery.open() },
  { keys: ['i'], about: 'what is checked, and what broke', can: () => checks.are, run: () => checks.open() },
  { keys: ['t'], about: 'light or dark', run: () => palette.turn() },
  { keys: ['Escape'], about: 'close, and back to where one was', run: () => pane.close() },
  { keys: ['?'], about: 'this sheet', run: () => byId('help').click() },
]);

byId('help-intro').addEventListener('click', () => {
  byId('sheet').close();
  intro.open();
});

const follower = new Follower(api, {
  onsnapshot: (snapshot) => {
    model.load(snapshot);
    document.body.dataset.source = model.source;
    document.body.dataset.run = model.run;
  },
  ondelta: (delta) => model.apply(delta),
  ongone: (news) => trouble.gone(news),
  onlocked: (error) => trouble.locked(error),
  onback: () => trouble.over(),
});
const trouble = new Trouble(model, api, () => follower.hurry());
follower.follow();
