// A clock, random numbers and a network for tests. Time stops until the program only waits.
import { setImmediate as turn } from 'node:timers/promises';

/** Turns of the event loop after which a program that still waits is waiting for the clock. */
const IDLE_TURNS = 20;

export class World {
  /** @param answers what the network says to each request; the last one is said again and again */
  constructor(...answers) {
    this.answers = answers;
    this.requests = [];
    this.waited = [];
    this.time = 1_800_000_000_000;
    this.dice = 0;
    this.timers = new Set();
  }

  get outside() {
    return {
      now: () => this.time,
      elapsed: () => this.time,
      dice: () => this.dice,
      isOnline: () => true,
      locks: null,
      wait: (ms, signal) => this.#wait(ms, signal),
      fetch: (url, init) => this.#fetch(url, init),
    };
  }

  /** Advances the clock until `promise` is settled. */
  async run(promise) {
    let isOver = false;
    promise.then(() => (isOver = true), () => (isOver = true));
    for (;;) {
      for (let turns = 0; turns < IDLE_TURNS && !isOver; turns++) await turn();
      if (isOver) return promise;
      const next = Array.from(this.timers).sort((one, other) => one.at - other.at)[0];
      if (!next) throw new Error('nobody waits for the time, and nothing happens');
      this.waited.push(next.ms);
      this.time = next.at;
      next.resolve();
    }
  }

  #wait(ms, signal) {
    return new Promise((resolve) => {
      const timer = { ms, at: this.time + ms, resolve: done };
      const timers = this.timers;
      function done() {
        timers.delete(timer);
        resolve();
      }
      if (signal.aborted) return resolve();
      timers.add(timer);
      signal.addEventListener('abort', done);
    });
  }

  async #fetch(url, init) {
    this.requests.push({ ...init, url, headers: new Headers(init.headers), at: this.time });
    const next = 1 < this.answers.length ? this.answers.shift() : this.answers[0];
    if (next instanceof Error) throw next;
    if (next === 'silence') return new Promise((_, reject) => init.signal.addEventListener('abort', () => reject(init.signal.reason)));
    return next.clone();
  }
}

export const answered = (status, headers = {}, body = null) => new Response(body, { status, headers });
export const lost = () => new TypeError('fetch failed');
