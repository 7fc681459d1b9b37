// The way to the server: requests, and the stream of deltas with its reconnection.

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 8000;
/** The server writes every 5 s; whoever hears nothing for so long has lost it. */
const SILENCE_MS = 14_000;

/** What the server says is wrong, in its own words. */
export class Refusal extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

const KEPT_AS = 'divvy.token';

/** Requests to `/api/v1`, with the token that the page was opened with, or that was entered. */
export class Api {
  #token = null;

  constructor() {
    const given = /(?:^#|&)token=([^&]+)/.exec(location.hash);
    if (given) {
      this.token = decodeURIComponent(given[1]);
      // Neither the address bar nor the history shows it.
      history.replaceState(null, '', location.pathname + location.search);
    } else this.#token = kept();
  }

  /** Holds until the tab is closed, so that the page can be loaded again. */
  set token(token) {
    this.#token = token;
    try {
      sessionStorage.setItem(KEPT_AS, token);
    } catch {
      // Then it holds until the page is loaded again.
    }
  }

  /** Asks for JSON. */
  async get(path) {
    return (await this.open(path)).json();
  }

  /** Asks for text. */
  async text(path) {
    return (await this.open(path)).text();
  }

  /** Does something: `{action, …}`. */
  act(action, fields = {}) {
    return this.post('actions', { action, ...fields });
  }

  /** Sends JSON, and answers with JSON. */
  async post(path, body) {
    const headers = { 'content-type': 'application/json' };
    return (await this.open(path, { method: 'POST', headers, body: JSON.stringify(body) })).json();
  }

  /** Any request under `/api/v1/`; a refusal is thrown with the server's words. */
  async open(path, options = {}) {
    const headers = { ...options.headers };
    if (this.#token) headers.authorization = `Bearer ${this.#token}`;
    let reply;
    try {
      reply = await fetch(`/api/v1/${path}`, { ...options, headers, cache: 'no-store' });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      // What browsers say of it differs, and none says it plainly.
      throw new Error('The server does not answer.');
    }
    if (reply.ok) return reply;
    const said = await reply.json().catch(() => ({}));
    throw new Refusal(reply.status, said.error ?? `${reply.status} ${reply.statusText}`);
  }
}

/**
 * Follows the cluster: a snapshot, then deltas, for as long as the page lives.
 *
 * `onsnapshot(snapshot)` and `ondelta(delta)` bring the world; `ongone({error, again})` says that the
 * server is gone and when the next attempt is, `onback()` that it answers again, and `onlocked(error)`
 * that it wants another token: then nothing is tried until `hurry()`.
 */
export class Follower {
  #api;
  #handlers;
  #wait = FIRST_WAIT_MS;
  #wake = null;
  #stream = null;

  constructor(api, handlers) {
    this.#api = api;
    this.#handlers = handlers;
  }

  /** Never ends: each round is a snapshot and the stream after it. */
  async follow() {
    for (;;) {
      try {
        const snapshot = await this.#api.get('snapshot');
        this.#handlers.onsnapshot(snapshot);
        this.#handlers.onback();
        this.#wait = FIRST_WAIT_MS;
        await this.#deltas(snapshot.sequence);
      } catch (error) {
        await this.#pause(error);
      }
    }
  }

  /** Tries now instead of when the wait is over. */
  hurry() {
    this.#wake?.();
  }

  /** Loads a new snapshot. */
  reload() {
    this.#stream?.abort(RELOAD);
  }

  async #pause(error) {
    if (error.status === 401 || error.status === 403) {
      this.#handlers.onlocked(error);
      await new Promise((resolve) => {
        this.#wake = resolve;
      });
      this.#wait = FIRST_WAIT_MS;
      return;
    }
    // Everybody who lost the same server should not come back in the same instant.
    const wait = this.#wait * (0.8 + 0.4 * Math.random());
    this.#wait = Math.min(LONGEST_WAIT_MS, this.#wait * 2);
    this.#handlers.ongone({ error, again: performance.now() + wait });
    await new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, wait);
    });
    this.#wake = null;
  }

  /** Returns when a new snapshot is due; throws when the server is gone. */
  async #deltas(after) {
    const stopping = new AbortController();
    this.#stream = stopping;
    let silence = 0;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => stopping.abort(new Error('the server has fallen silent')), SILENCE_MS);
    };
    try {
      heard();
      const reply = await this.#api.open(`events?after=${after}`, { signal: stopping.signal });
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      const messages = new Messages();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) throw new Error('the server has closed the connection');
        heard();
        for (const message of messages.take(value)) {
          if (message.event === 'reload') return;
          const delta = JSON.parse(message.data);
          this.#handlers.ondelta(delta);
          // The list itself is new, and with it every index.
          if (delta.names) return;
        }
      }
    } catch (error) {
      if (stopping.signal.reason === RELOAD) return;
      throw error;
    } finally {
      clearTimeout(silence);
      this.#stream = null;
      stopping.abort(RELOAD);
    }
  }
}

function kept() {
  try {
    return sessionStorage.getItem(KEPT_AS);
  } catch {
    return null; // A browser that keeps nothing asks again.
  }
}

const RELOAD = new Error('a new snapshot is due');

/** Server-sent events out of pieces of text. */
class Messages {
  #rest = '';

  *take(piece) {
    this.#rest += piece;
    for (;;) {
      const end = /\r?\n\r?\n/.exec(this.#rest);
      if (!end) return;
      const block = this.#rest.slice(0, end.index);
      this.#rest = this.#rest.slice(end.index + end[0].length);
      const message = { event: 'message', data: '' };
      for (const line of block.split(/\r?\n/)) {
        const [, field, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
        if (field === 'event') message.event = value;
        else if (field === 'data') message.data += (message.data && '\n') + value;
      }
      if (message.data || message.event === 'reload') yield message;
    }
  }
}
