// The contestant's side of the protocol: see bench/src/contest/protocol.rs.
import readline from "node:readline";

export const task = JSON.parse(process.argv[2]);
/** Callers that enqueue at a rate, at most one message each at a time. */
const CALLERS = 64;
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export const payload = (number) => ({ number, text: "x".repeat(Math.max(0, task.bytes - 30)) });

/** Says that the setup is done, and waits for the start. */
export async function ready() {
  console.log(JSON.stringify({ ready: true }));
  await lines.next();
}

/** Says that the part is done, and ends when the harness has read its counters. */
export async function done(latencies_us = []) {
  console.log(JSON.stringify({ done: true, latencies_us }));
  await lines.next();
  process.exit(0);
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Splits the messages into calls of 1,000. */
export function* bulks() {
  for (let first = 0; first < task.count; first += 1000) {
    const size = Math.min(1000, task.count - first);
    yield Array.from({ length: size }, (_, index) => payload(first + index));
  }
}

/** Enqueues at the task's rate, open loop, and reports how late each message started. `starts` is filled by the handler. */
export async function pickup(enqueue, starts) {
  await ready();
  const begin = performance.now();
  const due = (number) => begin + (number * 1000) / task.rate;
  let next = 0;
  const caller = async () => {
    while (next < task.count) {
      const number = next++;
      const wait = due(number) - performance.now();
      if (0 < wait) await sleep(wait);
      await enqueue(payload(number));
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  while (starts.length < task.count) await sleep(1);
  await done(starts.map(([number, at]) => Math.max(0, at - due(number)) * 1000));
}
