/**
 * Ichido in the browser and in Node: one key for one action, sent again until its outcome is known, and done once.
 *
 * Start at `Queue` (browser: saves now, sends when it can, survives the page) or at `Client` (browser and Node: sends now).
 * Times are in milliseconds; moments are milliseconds since the Unix epoch.
 */

/** Whose habits the server's answers follow. `ichido`, unless you say otherwise. */
export type Profile = 'ichido' | 'ietf' | 'stripe';
/** What is known of an effect. */
export type Effect = 'not_done' | 'done' | 'unknown';
/** Who began to send: a person, be it the first press or one on a retry button, or a program by itself (SPEC A14). */
export type Cause = 'manual' | 'auto';
/** Why a second try would be harmless, if it is. */
export type Safety = 'keyed' | 'repeatable' | 'neither';

// ---------------------------------------------------------------- keys

/** A new key, for one action. Keep it, and use it on every resend of that action. */
export function newKey(): string;

// ---------------------------------------------------------------- the client: sends now

export interface ClientSettings {
  /** What stands before relative URLs. The page's own address, in a browser. */
  baseUrl?: string;
  profile?: Profile;
  /** How often to try, and how long to wait in between: 1 s, 2 s, 4 s … plus 0 to 10 %, 3 tries (SPEC A9). */
  retry?: Partial<Retry>;
  /** The longest `Retry-After` that is waited for: 60,000. A server that asks for more is given up on at once. */
  retryAfterMaxMs?: number;
  /** The longest that one try may take, to the answer's last byte: 30,000. */
  tryTimeOutMs?: number;
  /** The longest for all tries and the waits between them: 120,000. */
  totalTimeOutMs?: number;
  /** How much of an answer is read: 1 MiB. */
  answerBytesMax?: number;
  /** Retries are a share of the work that succeeds, so that a failing server is not buried under them. */
  budget?: BudgetSettings;
  /** Header fields with credentials, asked for before each try and kept nowhere. */
  authorize?: () => Fields | Promise<Fields>;
  /** Whether the browser sends cookies: `same-origin`. */
  credentials?: 'omit' | 'same-origin' | 'include';
  /** How this program calls itself in `Ichido-Hops`: `browser` in a browser, nothing elsewhere. */
  hop?: string | null;
  outside?: Partial<Outside>;
}

/** Header fields. */
export type Fields = Readonly<Record<string, string>>;

/** One request that changes state. Every try of it is the same, byte for byte, but for the number of the try. */
export interface Action {
  /** `POST`, unless it says otherwise. */
  method?: string;
  url: string;
  /**
   * The action's key. Without one (a server that knows no keys) it is sent again only with proof that nothing was done, and ends
   * with `why: 'no_key'` at the first doubt (SPEC C4).
   */
  key?: string;
  /** A text, bytes, or anything else as JSON. */
  body?: unknown;
  /** `application/json` for what is made JSON here, `text/plain` for a text, `application/octet-stream` for bytes. */
  contentType?: string;
  /** Further header fields. No credentials: those come from `authorize`. */
  headers?: Fields;
  cause?: Cause;
  /** Tries that were made for it earlier: numbers go on where they stopped. */
  triesBefore?: number;
}

/** What came of it. */
export type Outcome =
  /** It was done, now or at an earlier try (`answer.isReplay`). */
  | { kind: 'done'; answer: Answer; tries: number }
  /** The server will not do it, however often it is asked. An earlier try that was lost may still have done it. */
  | { kind: 'refused'; reason: Refusal; answer: Answer; effect: Effect; tries: number }
  /** No outcome was learnt. The same action may be sent again, under the same key. */
  | { kind: 'gave_up'; why: Why; message: string; comeBackAt: number | null; last: Answer | null; effect: Effect; tries: number };

/**
 * What kind of no an answer is: the key was used for a different request; the server keeps this failure as the outcome of the key, and
 * says nothing else under it; or any other, in the server's own words.
 */
export type Refusal = 'key_conflict' | 'kept_failure' | 'by_server';

/** Why an action is not sent again, although the server did not refuse it. */
export type Why =
  | 'tries_spent'
  | 'asked_to_wait'
  | 'out_of_time'
  | 'another_key'
  | 'no_key'
  | 'budget_spent'
  | 'stopped';

/** What a server answered. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** Whether that is all of the body. If not, it was longer than is read; the status still stands. */
  readonly isWhole: boolean;
  /** Whether the server says that this is the outcome of an earlier request under the key (SPEC C5). */
  readonly isReplay: boolean;
  /** The body as a text. */
  text(): string;
  /** The body as JSON; `undefined` where it is none. */
  json(): unknown;
}

export class Client {
  constructor(settings?: ClientSettings);
  /** Sends an action until its outcome is known, or until it must not be sent again. It ends within the total time. */
  send(action: Action, options?: { signal?: AbortSignal }): Promise<Outcome>;
  /** Asks for what is there. A read changes nothing: it has no key, and is made again by the same rules. */
  read(url: string, options?: { signal?: AbortSignal; headers?: Fields }): Promise<Outcome>;
}

// ---------------------------------------------------------------- the queue: saves now, sends when it can (browser)

export interface QueueSettings {
  /**
   * Whose queue this is: a name for the person who is signed in. Each has a database of its own, and nothing of it is ever sent
   * while another's is open. It is no secret, and is not sent.
   */
  identity: string;
  /** Tells queues of one page apart: `ichido`. */
  name?: string;
  /**
   * Header fields with credentials, asked for before each try and kept nowhere. `null` is that `identity` is not signed in now: nothing
   * is sent until it is. With cookies, answer `null` unless the session is still that person's.
   */
  authorize?: (identity: string) => Fields | null | Promise<Fields | null>;
  /**
   * Whether an answer that looks like a success is one of the server's own: such as, that it is JSON and names what was made. A network's
   * login page answers 200 too; what it answers is no outcome then. Every answer is believed, unless this says otherwise.
   */
  isOurs?: (answer: Answer, key: string) => boolean;
  baseUrl?: string;
  profile?: Profile;
  credentials?: 'omit' | 'same-origin' | 'include';
  hop?: string | null;
  /** Answers without an outcome (5xx, 408, 429) until an entry is marked failed: 3 (SPEC A13). */
  tries?: number;
  /** The longest that one try may take: 30,000. */
  tryTimeOutMs?: number;
  /** How long the server keeps keys: 72 h. An entry that was once sent is held for the person before that (SPEC A13). */
  keepsKeysForMs?: number;
  /** The largest body: 1 MiB. */
  entryBytesMax?: number;
  /** The most entries: 1,000. */
  entriesMax?: number;
  /** How much of an answer is read: 1 MiB. */
  answerBytesMax?: number;
  outside?: Partial<Outside>;
}

/** An action for the queue, which makes the key. */
export interface Draft {
  method?: string;
  url: string;
  body?: unknown;
  contentType?: string;
  /** Further header fields. They are stored: no credentials. */
  headers?: Fields;
  cause?: Cause;
  /**
   * What the person means by it, such as `save https://example.com/`. While an action with the same intent is open, a second press
   * is the same action: the same entry, the same key (SPEC A7).
   */
  intent?: string;
  /** What keeps its order together. The URL's origin, unless it says otherwise. */
  destination?: string;
}

/** What a person sees (SPEC A12). */
export type State = 'saving' | 'processing' | 'done' | 'failed' | 'retrying';

/** An action in the queue, as it stands. */
export interface Entry {
  readonly id: number;
  readonly intent: string | null;
  readonly state: State;
  /** Whether `retry(id)` can help. */
  readonly canRetry: boolean;
  /** What went wrong, or why it waits. */
  readonly errorMessage: string | null;
  /** Whether it is held for the person: it was once sent, and the server may have forgotten its key. `release(id)` or `discard(id)`. */
  readonly isHeld: boolean;
  /** Requests made for it. */
  readonly tries: number;
  readonly createdAt: number;
  /** When it is tried next, where that is known. */
  readonly nextTryAt: number | null;
  readonly effect: Effect;
  /** The answer that was the outcome, or the last one that was none. Its body is there up to 16 KiB. */
  readonly answer: { status: number; isReplay: boolean; body: string | null } | null;
}

/** An entry changed. `entry` is `null` when it was discarded. */
export type Change = { id: number; entry: Entry | null };

export class Queue {
  private constructor();
  /** Opens the queue and sends what waits in it. */
  static open(settings: QueueSettings): Promise<Queue>;
  /**
   * Forgets what is known of entries that are done, their answers too, in every queue of this name, whoever's it is: for when somebody signs
   * out. What is not done stays. Browsers that do not list their databases (Firefox before 126) forget nothing here.
   */
  static forgetDone(settings?: { name?: string }): Promise<void>;
  /** Whether the browser promised not to evict what is stored; `null` until it was asked, at the first `enqueue`. */
  readonly isPersistent: boolean | null;
  /** Makes the key and stores it with the body; when this resolves, it is on the disk. It is sent as soon as it can be. */
  enqueue(draft: Draft): Promise<Entry>;
  /** All entries, in order, and the latest that are done. */
  list(): Promise<Entry[]>;
  get(id: number): Promise<Entry | null>;
  /** Calls `listener` for each change, in any tab. Returns what ends it. */
  subscribe(listener: (change: Change) => void): () => void;
  /** Sends a failed entry again, under the same key. */
  retry(id: number): Promise<Entry>;
  /** Sends a held entry after all: the person says that it was not done, or may be done again. */
  release(id: number): Promise<Entry>;
  /** Forgets an entry. What was sent may have been done all the same. */
  discard(id: number): Promise<void>;
  /** Sends what is due now; resolves to how many entries still wait to be sent. */
  drain(): Promise<number>;
  /** Ends what this page does for the queue. What is stored stays. */
  close(): void;
}

/**
 * For a service worker: sends what waits when the browser says that the network is back (Background Sync). `open` opens the queue of
 * whoever is signed in, or answers `null` if nobody is.
 */
export function drainOnSync(open: () => Promise<Queue | null>): void;

// ---------------------------------------------------------------- the rules, pure

/** `baseMs × factor^(n − 1)` after failure n, at most `capMs`, plus 0 to `jitter` of it; `tries` in all. */
export interface Retry {
  tries: number;
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

/** What was sent so far, and what is known of it. */
export interface Tries {
  sent: number;
  failed: number;
  effect: Effect;
}

/** What was seen of a try; `names` are those that an error goes by in its body. Of the faults only `never_sent` proves that nothing arrived. */
export type Seen =
  | { answer: { status: number; headers: Headers; names: readonly string[]; echo: Echo } }
  | { fault: 'never_sent' | 'lost' | 'timeout' | 'answer_cut' };

/** Whether an answer carries our key back. */
export type Echo = 'same' | 'other' | 'absent';

export type Next =
  | { next: 'done' }
  | { next: 'refused'; effect: Effect; reason: Refusal }
  | { next: 'again'; waitMs: number; inFlight: boolean; tries: Tries }
  | { next: 'give_up'; why: Why; comeBackAt: number | null; effect: Effect };

/** What to do after a try. `dice` is uniform in [0, 1). */
export function decide(
  rules: Rules,
  safety: Safety,
  before: Tries,
  seen: Seen,
  moment: { now: number; leftMs: number },
  dice: number,
): Next;

/** A client's own retries (SPEC A9). */
export const CLIENT_RETRY: Readonly<Retry>;
/** Before the first try. */
export const NO_TRIES: Readonly<Tries>;

export interface BudgetSettings {
  /** The most that can be saved up, in hundredths of a retry: 1,000. */
  capacity: number;
  /** What one call that succeeds at its first try adds, in hundredths of a retry: 20. */
  earnedPerSuccess: number;
}

// ---------------------------------------------------------------- the world outside, for tests

/** What the rules never ask for by themselves: the clock, the dice, the network. */
export interface Outside {
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** The time of the day. */
  now: () => number;
  /** Time that only goes forward. */
  elapsed: () => number;
  /** Resolves after so long, or when the signal is aborted. */
  wait: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Uniform in [0, 1). For spreading waits, never for keys. */
  dice: () => number;
  /** Whether the device has a network at all. */
  isOnline: () => boolean;
  /** Web Locks; `null` where there are none, and leases alone keep senders apart. */
  locks: LockManager | null;
}
