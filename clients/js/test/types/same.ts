// Checks that `ichido.d.ts` matches the modules: this does not compile if they differ.
import * as client from '../../client.js';
import type * as said from '../../ichido.d.ts';
import * as key from '../../key.js';
import * as next from '../../next.js';
import * as queue from '../../queue.js';
import * as sw from '../../sw.js';

/** Only the instances and statics can be compared: only `Queue.open` constructs a queue. */
type Said = Omit<typeof said, 'Queue' | 'drainOnSync'>;
export const same: Said = {
  Client: client.Client,
  newKey: key.newKey,
  decide: next.decide,
  CLIENT_RETRY: next.CLIENT_RETRY,
  NO_ATTEMPTS: next.NO_ATTEMPTS,
};
type Face<T> = { [Name in keyof T]: T[Name] };
export const open: (settings: said.QueueSettings) => Promise<Face<said.Queue>> = queue.Queue.open;
export const drainOnSync: (open: () => Promise<queue.Queue | null>) => void = sw.drainOnSync;
