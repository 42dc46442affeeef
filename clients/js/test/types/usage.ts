// Uses the module from TypeScript. Code that must not compile is marked, and the mark fails if it compiles.
import { Client, decide, drainOnSync, newKey, NO_ATTEMPTS, Queue, type Entry, type Outcome } from 'ichido';

export async function page(render: (entry: Entry | null) => void): Promise<string> {
  const queue = await Queue.open({ identity: 'ann', authorize: async (identity) => ({ Authorization: `Bearer ${identity}` }) });
  const stop = queue.subscribe(({ entry }) => render(entry));
  const entry = await queue.enqueue({ url: '/v1/bookmarks', body: { url: 'https://example.com/' }, intent: 'save' });
  if (entry.state === 'failed' && entry.canRetry) await queue.retry(entry.id);
  stop();
  // @ts-expect-error A queue belongs to somebody.
  await Queue.open({});
  // @ts-expect-error Nobody makes one but `open`.
  new Queue();
  // @ts-expect-error There is no such state.
  return entry.state === 'lost' ? 'lost' : entry.state;
}

export async function program(): Promise<number | null> {
  const client = new Client({ baseUrl: 'https://ichido.example', profile: 'ietf', retry: { attempts: 5 } });
  const outcome: Outcome = await client.send({ url: '/orders', key: newKey(), body: { qty: 1 } });
  switch (outcome.kind) {
    case 'done':
      return outcome.answer.status;
    case 'refused':
      return outcome.effect === 'unknown' ? null : outcome.answer.status;
    case 'gave_up':
      return outcome.comeBackAt;
  }
}

drainOnSync(async () => null);
const rules = { retry: { attempts: 3, baseMs: 1000, factor: 2, capMs: 60_000, jitter: 0.1 }, retryAfterMaxMs: 60_000, profile: 'ichido' as const };
export const next = decide(rules, 'keyed', NO_ATTEMPTS, { fault: 'lost' }, { now: 0, leftMs: 10_000 }, 0.5).next;
