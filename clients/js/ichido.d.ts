/**
 * Ichido for browsers and Node: one key for one action, retried until its outcome is known, and done once.
 *
 * Start at `Queue` (browser: saves now, sends when it can, survives the page) or at `Client` (browser and Node: sends now).
 * Times are in milliseconds; moments are milliseconds since the Unix epoch.
 */

/** The dialect of the server's responses. Default: `ichido`. */
export type Profile = 'ichido' | 'ietf' | 'stripe';
/** What is known about an effect. */
export type Effect = 'not_done' | 'done' | 'unknown';
/** Who started the attempt: a person, for the first time or with a retry button, or a program. */
export type Cause = 'manual' | 'auto';
/** Why a second attempt would be safe, if it is. */
export type Safety = 'keyed' | 'idempotent' | 'none';

// ---------------------------------------------------------------- keys

/** Creates a key for one action. Keep it, and use it on every retry of that action. */
export function newKey(): string;

// ---------------------------------------------------------------- the client: sends now

export interface ClientSettings {
  /** Base of relative URLs. Default in a browser: the page's address. */
  baseUrl?: string;
  profile?: Profile;
  /** Number of attempts and backoff. Default: 3 attempts; 1 s, 2 s, 4 s … plus 0 to 10 %. */
  retry?: Partial<Retry>;
  /** Longest `Retry-After` to wait for. If the server asks for more, the client gives up at once. Default: 60,000. */
  retryAfterMaxMs?: number;
  /** Timeout of one attempt, to the last byte of the response. Default: 30,000. */
  attemptTimeoutMs?: number;
  /** Timeout for all attempts and the waits between them. Default: 120,000. */
  totalTimeoutMs?: number;
  /** How much of a response body is read. Default: 1 MiB. */
  maxResponseBytes?: number;
  /** Retry budget: a share of the calls that succeed, so retries do not overload a failing server. */
  budget?: BudgetSettings;
  /** Returns headers with credentials. It is called before each attempt, and the result is never stored. */
  authorize?: () => Fields | Promise<Fields>;
  /** Whether the browser sends cookies. Default: `same-origin`. */
  credentials?: 'omit' | 'same-origin' | 'include';
  /** Name of this program in `Ichido-Hops`. Default: `browser` in a browser, none elsewhere. */
  hop?: string | null;
  outside?: Partial<Outside>;
}

/** Header fields. */
export type Fields = Readonly<Record<string, string>>;

/** One request that changes state. All its attempts are the same, byte for byte, except for the attempt number. */
export interface Action {
  /** Default: `POST`. */
  method?: string;
  url: string;
  /**
   * The action's key. Without one (for a server that does not support keys) it is retried only with proof that nothing was done, and
   * otherwise ends with `why: 'no_key'`.
   */
  key?: string;
  /** A string, bytes, or anything else as JSON. */
  body?: unknown;
  /** Default: `text/plain` for a string, `application/octet-stream` for bytes, `application/json` for the rest. */
  contentType?: string;
  /** Further headers. No credentials: those come from `authorize`. */
  headers?: Fields;
  cause?: Cause;
  /** Number of earlier attempts; the attempt numbers continue from there. */
  triesBefore?: number;
}

/** The outcome of an action. */
export type Outcome =
  /** It was done, now or by an earlier attempt (`answer.isReplay`). */
  | { kind: 'done'; answer: Answer; attempts: number }
  /** The server refused it, and a retry would not help. An earlier attempt whose response was lost may still have done it. */
  | { kind: 'refused'; reason: Refusal; answer: Answer; effect: Effect; attempts: number }
  /** The outcome is not known. The same action may be sent again with the same key. */
  | { kind: 'gave_up'; why: Why; message: string; comeBackAt: number | null; last: Answer | null; effect: Effect; attempts: number };

/**
 * The kind of refusal: the key was used for a different request; the server stores this failure as the outcome of the key and always
 * replays it; or any other refusal, with the server's own reason.
 */
export type Refusal = 'key_conflict' | 'kept_failure' | 'by_server';

/** Why an action is not retried, although the server did not refuse it. */
export type Why =
  | 'attempts_spent'
  | 'asked_to_wait'
  | 'out_of_time'
  | 'another_key'
  | 'no_key'
  | 'budget_spent'
  | 'stopped';

/** A response of the server. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** Whether the body is complete. If not, it was longer than the limit; the status is still valid. */
  readonly isWhole: boolean;
  /** Whether the server says that this is a replay: the outcome of an earlier request with the same key. */
  readonly isReplay: boolean;
  /** Returns the body as a string. */
  text(): string;
  /** Returns the body as JSON, or `undefined` if it is not JSON. */
  json(): unknown;
}

export class Client {
  constructor(settings?: ClientSettings);
  /** Sends an action until its outcome is known or it must not be retried. It ends within the total timeout. */
  send(action: Action, options?: { signal?: AbortSignal }): Promise<Outcome>;
  /** Reads a resource. A read changes nothing: it has no key, and is retried by the same rules. */
  read(url: string, options?: { signal?: AbortSignal; headers?: Fields }): Promise<Outcome>;
}

// ---------------------------------------------------------------- the queue: saves now, sends when it can (browser)

export interface QueueSettings {
  /**
   * The owner of the queue: a name for the person who is signed in. Each identity has its own database, and nothing in it is sent
   * while another identity's queue is open. The name is not a secret and is not sent.
   */
  identity: string;
  /** Distinguishes the queues of one page. Default: `ichido`. */
  name?: string;
  /**
   * Returns headers with credentials. It is called before each attempt, and the result is never stored. `null` means that `identity` is
   * not signed in: nothing is sent until it is. With cookies, return `null` unless the session still belongs to that person.
   */
  authorize?: (identity: string) => Fields | null | Promise<Fields | null>;
  /**
   * Whether a success really comes from the server; for example, that it is JSON and names the new resource. A network's login page
   * returns 200 too, which is not an outcome. Default: every response is accepted.
   */
  isOurs?: (answer: Answer, key: string) => boolean;
  baseUrl?: string;
  profile?: Profile;
  credentials?: 'omit' | 'same-origin' | 'include';
  hop?: string | null;
  /** Number of responses without an outcome (5xx, 408, 429) after which an entry fails. Default: 3. */
  attempts?: number;
  /** Timeout of one attempt. Default: 30,000. */
  attemptTimeoutMs?: number;
  /** How long the server keeps keys. An entry that was sent is held for the person before that time ends. Default: 72 h. */
  keepsKeysForMs?: number;
  /** Maximum size of a body. Default: 1 MiB. */
  maxEntryBytes?: number;
  /** Maximum number of entries. Default: 1,000. */
  maxEntries?: number;
  /** How much of a response body is read. Default: 1 MiB. */
  maxResponseBytes?: number;
  outside?: Partial<Outside>;
}

/** An action for the queue, which creates the key. */
export interface Draft {
  method?: string;
  url: string;
  body?: unknown;
  contentType?: string;
  /** Further headers. They are stored: no credentials. */
  headers?: Fields;
  cause?: Cause;
  /**
   * The person's intent, such as `save https://example.com/`. While an action with the same intent is open, a second click is the same
   * action: the same entry, the same key.
   */
  intent?: string;
  /** Entries of one destination are sent in order. Default: the URL's origin. */
  destination?: string;
}

/** The state that a person sees. */
export type State = 'saving' | 'processing' | 'done' | 'failed' | 'retrying';

/** An action in the queue. */
export interface Entry {
  readonly id: number;
  readonly intent: string | null;
  readonly state: State;
  /** Whether `retry(id)` can help. */
  readonly canRetry: boolean;
  /** What failed, or why it waits. */
  readonly errorMessage: string | null;
  /** Whether it is held for the person: it was sent, and the server may have forgotten its key. Call `release(id)` or `discard(id)`. */
  readonly isHeld: boolean;
  /** Number of requests made. */
  readonly attempts: number;
  readonly createdAt: number;
  /** When the next attempt is, if known. */
  readonly nextAttemptAt: number | null;
  readonly effect: Effect;
  /** The response that was the outcome, or the last one that was not. Its body is kept up to 16 KiB. */
  readonly answer: { status: number; isReplay: boolean; body: string | null } | null;
}

/** An entry changed. `entry` is `null` when it was discarded. */
export type Change = { id: number; entry: Entry | null };

export class Queue {
  private constructor();
  /** Opens the queue and sends what waits in it. */
  static open(settings: QueueSettings): Promise<Queue>;
  /**
   * Deletes entries that are done, with their responses, in the queues of all identities with this name. Call it when a person signs out.
   * Other entries stay. Browsers that cannot list their databases (Firefox before 126) delete nothing.
   */
  static forgetDone(settings?: { name?: string }): Promise<void>;
  /** Whether the browser promised not to evict the stored data; `null` until it was asked, at the first `enqueue`. */
  readonly isPersistent: boolean | null;
  /** Creates the key and stores it with the body. When this resolves, both are on disk. The entry is sent as soon as possible. */
  enqueue(draft: Draft): Promise<Entry>;
  /** Returns all entries in order, including the latest that are done. */
  list(): Promise<Entry[]>;
  get(id: number): Promise<Entry | null>;
  /** Calls `listener` for each change in any tab. Returns a function that unsubscribes. */
  subscribe(listener: (change: Change) => void): () => void;
  /** Retries a failed entry with the same key. */
  retry(id: number): Promise<Entry>;
  /** Sends a held entry: the person says that it was not done, or may be done twice. */
  release(id: number): Promise<Entry>;
  /** Deletes an entry. If it was sent, it may have been done anyway. */
  discard(id: number): Promise<void>;
  /** Sends the entries that are due. Resolves to the number of entries that still wait. */
  drain(): Promise<number>;
  /**
   * Sends at once what waits because earlier attempts had no response. Call it when the page learns that the server is back, or when a
   * person asks for it. A wait that a server asked for stays.
   */
  sendNow(): Promise<void>;
  /** Stops sending from this page. The stored entries stay. */
  close(): void;
}

/**
 * For a service worker: sends waiting entries when the browser says that the network is back (Background Sync). `open` opens the queue of
 * the person who is signed in, or returns `null` if nobody is.
 */
export function drainOnSync(open: () => Promise<Queue | null>): void;

// ---------------------------------------------------------------- the rules, pure

/** Backoff: `baseMs × factor^(n − 1)` after failure n, at most `capMs`, plus 0 to `jitter` of it; `attempts` attempts in total. */
export interface Retry {
  attempts: number;
  baseMs: number;
  factor: number;
  capMs: number;
  jitter: number;
}

export interface Rules {
  retry: Retry;
  retryAfterMaxMs: number;
  profile: Profile;
}

/** The attempts so far, and what is known about their effect. */
export interface Attempts {
  sent: number;
  failed: number;
  effect: Effect;
}

/** The result of one attempt. `names` are the error codes in the body. Only the fault `never_sent` proves that nothing arrived. */
export type Seen =
  | { answer: { status: number; headers: Headers; names: readonly string[]; echo: Echo } }
  | { fault: 'never_sent' | 'lost' | 'timeout' | 'answer_cut' };

/** Whether a response echoes our key. */
export type Echo = 'same' | 'other' | 'absent';

export type Next =
  | { next: 'done' }
  | { next: 'refused'; effect: Effect; reason: Refusal }
  | { next: 'again'; waitMs: number; inFlight: boolean; attempts: Attempts }
  | { next: 'give_up'; why: Why; comeBackAt: number | null; effect: Effect };

/** Decides what to do after an attempt. `dice` is uniform in [0, 1). */
export function decide(
  rules: Rules,
  safety: Safety,
  before: Attempts,
  seen: Seen,
  moment: { now: number; leftMs: number },
  dice: number,
): Next;

/** The default retry settings of a client. */
export const CLIENT_RETRY: Readonly<Retry>;
/** No attempts yet. */
export const NO_ATTEMPTS: Readonly<Attempts>;

export interface BudgetSettings {
  /** Maximum budget, in hundredths of a retry. Default: 1,000. */
  capacity: number;
  /** What a call that succeeds on its first attempt adds, in hundredths of a retry. Default: 20. */
  earnedPerSuccess: number;
}

// ---------------------------------------------------------------- the environment, for tests

/** The environment that tests replace: clock, random numbers, network. */
export interface Outside {
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** The wall clock. */
  now: () => number;
  /** A monotonic clock. */
  elapsed: () => number;
  /** Resolves after `ms`, or when the signal is aborted. */
  wait: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Uniform in [0, 1). For jitter, never for keys. */
  dice: () => number;
  /** Whether the device has a network at all. */
  isOnline: () => boolean;
  /** Web Locks; `null` if unavailable, and then leases alone keep senders apart. */
  locks: LockManager | null;
}
