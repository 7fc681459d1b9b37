// The condition a worker is in: what matters most about it, and what else is unusual.

import { figure } from './element.js';

/** So much of a lease is taken to pass before the next renewal is told. */
const LEFT_UNTOLD = 0.34;

/** What keeps a worker from its work, the worst first: each as `{text, about}`. */
function troubles(worker, model) {
  if (!worker.alive) return [{ text: 'gone', about: 'has no process' }];
  // Who only looks on knows that it cannot see the store itself; the workers may well.
  const down = model.store.state === 'down' && model.source !== 'observed';
  return [
    worker.paused && { text: 'paused', about: 'stands still, as after kill -STOP' },
    worker.isolated && { text: worker.isolated === 'full' ? 'cut off' : `cut off: ${worker.isolated}`, about: 'cannot reach what it should' },
    down && { text: 'store down', about: 'cannot renew its lease' },
  ].filter(Boolean);
}

/** What it is doing, or what keeps it from that: `{text, bad}`. */
export function conditionOf(worker, model) {
  const [worst] = troubles(worker, model);
  if (worst) return { text: worst.text, bad: true };
  return { text: worker.state, bad: worker.health !== 'healthy' };
}

/** What else is unusual about it: `{text, kind, about}`. */
export function badgesOf(worker, model) {
  const [, ...others] = troubles(worker, model);
  return [
    ...others.map(({ text, about }) => ({ text, kind: 'trouble', about })),
    worker.health !== 'healthy' && { text: 'unhealthy', kind: 'trouble', about: 'says that it is unhealthy, and may own nothing' },
    worker.broken && { text: 'broken', kind: 'trouble', about: 'starting a partition fails' },
    worker.slow && { text: 'slow', kind: 'odd', about: 'starting and stopping takes long' },
    worker.draining ? { text: 'draining', kind: 'odd', about: 'gives away all it has' }
      : worker.cordoned && { text: 'cordoned', kind: 'odd', about: 'gets nothing more' },
    worker.weight !== 1 && { text: `weight ${figure(worker.weight)}`, kind: 'plain', about: 'its share is that much greater' },
    worker.zone && { text: /^zone\b/i.test(worker.zone) ? worker.zone : `zone ${worker.zone}`, kind: 'plain', about: 'where it runs' },
  ].filter(Boolean);
}

/** Whether there is a lease of a known length that runs down. */
export const hasClock = (worker) => worker.alive && Number.isFinite(worker.lease_left_ms) && worker.lease_ms > 0;

/** What is left of a lease at a time of the world. */
export function leaseLeft(worker, world) {
  const stuck = !worker.alive || worker.paused || Boolean(worker.isolated);
  // Who can renew does so, though not every renewal is told where there are many workers.
  const since = Math.min(Math.max(0, world - worker.read_ms), stuck || worker.lease_ms === null ? Infinity : worker.lease_ms * LEFT_UNTOLD);
  return Math.max(0, (worker.lease_left_ms ?? 0) - since);
}
