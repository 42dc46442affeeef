-- The ledger and the outbox, as on PostgreSQL. Differences are explained where they occur.
--
-- Times are whole microseconds since 1970: SQLite has no type for them. They are the database's clock plus the store's skew,
-- read once in each transaction and bound, so no row mixes two clocks. Hashes and UUIDs are blobs, booleans are 0 and 1.
--
-- Tables are STRICT, so a column holds only its declared type. Narrow ones are WITHOUT ROWID: the key is the row. Those with
-- payloads are not, because large rows would be stored in the inner pages of the tree.

-- The last issued fence. There is one writer, so a counter is a sequence; a rollback also rolls back its fences.
CREATE TABLE ichido_fence (
    one  INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL CHECK (last >= 0)
) STRICT;

INSERT INTO ichido_fence (one, last) VALUES (1, 0);

CREATE TABLE ichido_ledger (
    name           BLOB    NOT NULL PRIMARY KEY, -- A hash of operation, identity and key, never client text.
    operation      TEXT    NOT NULL,
    identity       TEXT    NOT NULL,
    key            TEXT    NOT NULL,
    fingerprint    BLOB    NOT NULL,
    request_digest BLOB    NOT NULL,
    guarantee           TEXT    NOT NULL, -- The strictest mode it was claimed under: the operation's mode may change later.
    state          TEXT    NOT NULL,
    fence          INTEGER NOT NULL,
    claim_id       BLOB    NOT NULL, -- Identifies the claiming attempt, which recognizes its own claim after a lost response.
    lease_until    INTEGER,
    status         INTEGER,
    headers        BLOB,
    body           BLOB,
    result_digest  BLOB,
    message_id     BLOB,
    created_at     INTEGER NOT NULL, -- First claimed for this action.
    claimed_at     INTEGER NOT NULL, -- Last claimed.
    completed_at   INTEGER, -- When it was settled. Of an unknown outcome: when its call was answered, if it was.
    expires_at     INTEGER,
    hops           TEXT,                         -- The hops of the request, from its header; bounded.
    trace          TEXT,
    -- SQLite compiles these into each prepared statement, so unlike on PostgreSQL they cost next to nothing.
    CONSTRAINT ledger_hashes CHECK (length(name) = 32 AND length(fingerprint) = 32 AND length(request_digest) = 32),
    CONSTRAINT ledger_guarantee CHECK (guarantee IN ('transactional', 'idempotent', 'keyed', 'none')),
    CONSTRAINT ledger_state CHECK (state IN ('claimed', 'applied', 'refused', 'unknown')),
    CONSTRAINT ledger_lease CHECK ((state = 'claimed') = (lease_until IS NOT NULL)),
    -- Only settled records have an outcome and expire.
    CONSTRAINT ledger_outcome CHECK ((state IN ('applied', 'refused')) = (status IS NOT NULL AND headers IS NOT NULL AND completed_at IS NOT NULL AND expires_at IS NOT NULL)),
    -- PostgreSQL's text cannot hold NUL; without this check the two would accept different names.
    CONSTRAINT ledger_text CHECK (instr(operation, char(0)) = 0 AND instr(identity, char(0)) = 0 AND instr(coalesce(hops, ''), char(0)) = 0 AND instr(coalesce(trace, ''), char(0)) = 0)
) STRICT;

CREATE INDEX ichido_ledger_expiry ON ichido_ledger (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX ichido_ledger_lapse ON ichido_ledger (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX ichido_ledger_unknown ON ichido_ledger (created_at, name) WHERE state = 'unknown';
CREATE INDEX ichido_ledger_message ON ichido_ledger (message_id) WHERE message_id IS NOT NULL;

-- The requests: written once, never updated.
CREATE TABLE ichido_messages (
    id            BLOB    NOT NULL PRIMARY KEY, -- UUIDv7: new rows go to the end of the index.
    queue         TEXT    NOT NULL,
    identity      TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    digest        BLOB    NOT NULL,
    content_type  TEXT    NOT NULL,
    request       BLOB    NOT NULL,
    trace         TEXT,
    priority      INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    due           INTEGER,                      -- The earliest time to send; NULL is at once.
    replacement_of     BLOB,                         -- The dead message that this one replaces.
    created_at    INTEGER NOT NULL,
    hops          TEXT,                         -- The hops of the request, from its header; bounded.
    trace_id      TEXT,                         -- The correlation id in the request; bounded.
    item          TEXT,                         -- What the message is about, for people: a title or URL in the request; bounded.
    CONSTRAINT messages_once UNIQUE (queue, identity, key),
    CONSTRAINT messages_id CHECK (length(id) = 16),
    CONSTRAINT messages_digest CHECK (length(digest) = 32),
    CONSTRAINT messages_max_attempts CHECK (max_attempts > 0),
    CONSTRAINT messages_text CHECK (instr(identity, char(0)) = 0 AND instr(content_type, char(0)) = 0 AND instr(coalesce(hops, ''), char(0)) = 0 AND instr(coalesce(trace, ''), char(0)) = 0
        AND instr(coalesce(trace_id, ''), char(0)) = 0 AND instr(coalesce(item, ''), char(0)) = 0)
) STRICT;

-- Messages are found by trace id. One without costs nothing here.
CREATE INDEX ichido_messages_trace_id ON ichido_messages (trace_id, id) WHERE trace_id IS NOT NULL;

-- Claimable messages. A row is inserted and deleted, never updated.
CREATE TABLE ichido_ready (
    queue         TEXT    NOT NULL,
    priority      INTEGER NOT NULL,
    message_id    BLOB    NOT NULL,
    suspect       INTEGER NOT NULL DEFAULT 0 CHECK (suspect IN (0, 1)), -- A worker died holding it with others: claim it alone.
    attempts         INTEGER NOT NULL DEFAULT 0,
    deaths        INTEGER NOT NULL DEFAULT 0,
    doubt_since   INTEGER,
    in_flight_until INTEGER,
    last_fence    INTEGER,
    PRIMARY KEY (queue, priority, message_id) -- The order of claims: most urgent first, then oldest.
) STRICT, WITHOUT ROWID;

CREATE INDEX ichido_ready_suspect ON ichido_ready (queue, priority, message_id) WHERE suspect;

-- Messages that wait for their time: delayed ones, and failed ones between two attempts.
CREATE TABLE ichido_scheduled (
    message_id    BLOB    NOT NULL PRIMARY KEY,
    queue         TEXT    NOT NULL,
    priority      INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    due           INTEGER NOT NULL,
    suspect       INTEGER NOT NULL CHECK (suspect IN (0, 1)),
    attempts         INTEGER NOT NULL,
    deaths        INTEGER NOT NULL,
    doubt_since   INTEGER,
    in_flight_until INTEGER,
    last_fence    INTEGER,
    CONSTRAINT scheduled_state CHECK (state IN ('queued', 'failed'))
) STRICT, WITHOUT ROWID;

CREATE INDEX ichido_scheduled_due ON ichido_scheduled (due);

-- Leases: one row for a whole claimed batch. The messages are a JSON array of their ids in hex, not a
-- separate table: the lease row avoids writing and deleting one more row per message.
CREATE TABLE ichido_leases (
    fence       INTEGER NOT NULL PRIMARY KEY,
    queue       TEXT    NOT NULL,
    node        BLOB    NOT NULL,
    claimed_at  INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    start_marks       INTEGER NOT NULL CHECK (start_marks IN (0, 1)), -- Whether the start of each call is marked in `ichido_start_marks`.
    suspect     INTEGER NOT NULL CHECK (suspect IN (0, 1)), -- Whether it was claimed alone because a worker died with it.
    guarantee   TEXT    NOT NULL, -- The holder's guarantee: the rescuer's configuration may differ.
    keeps_for   INTEGER,          -- Microseconds for which the receiver keeps keys.
    max_time_in_flight INTEGER NOT NULL, -- Microseconds for which its holder's calls may be in flight.
    message_ids TEXT    NOT NULL,
    CONSTRAINT leases_some CHECK (json_array_length(message_ids) > 0),
    CONSTRAINT leases_guarantee CHECK (guarantee IN ('none', 'idempotent', 'keyed', 'transactional')),
    CONSTRAINT leases_keeps CHECK ((guarantee = 'keyed') = (keeps_for IS NOT NULL))
) STRICT;

CREATE INDEX ichido_leases_lapse ON ichido_leases (lease_until);

-- The durable mark before an irreversible call: not started means not done.
CREATE TABLE ichido_start_marks (
    fence      INTEGER NOT NULL,
    message_id BLOB    NOT NULL,
    PRIMARY KEY (fence, message_id)
) STRICT, WITHOUT ROWID;

-- Requests to cancel messages in flight; usually none. A row is deleted once no attempt is in flight any more.
CREATE TABLE ichido_cancellations (
    message_id   BLOB    NOT NULL PRIMARY KEY,
    requested_at INTEGER NOT NULL,
    actor        TEXT,
    reason       TEXT
) STRICT, WITHOUT ROWID;

-- Dead and parked messages, separate from the hot tables and from history.
CREATE TABLE ichido_dead_letters (
    message_id    BLOB    NOT NULL PRIMARY KEY,
    queue         TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    effect        TEXT    NOT NULL,
    code          TEXT,
    error         TEXT,
    since         INTEGER NOT NULL,
    attempts         INTEGER NOT NULL,
    deaths        INTEGER NOT NULL,
    doubt_since   INTEGER,
    in_flight_until INTEGER,
    last_fence    INTEGER,
    closed        TEXT    NOT NULL DEFAULT 'open', -- Whether a person has closed it: it is kept, and listed only on request.
    CONSTRAINT dead_letters_state CHECK (state IN ('dead', 'parked')),
    CONSTRAINT dead_letters_effect CHECK (effect IN ('not_done', 'done', 'unknown')),
    CONSTRAINT dead_letters_closed CHECK (closed = 'open' OR closed IN ('discarded', 'replaced') AND state = 'dead'),
    -- A parked message is in doubt, and a doubt has both timestamps.
    CONSTRAINT dead_letters_doubt CHECK (state <> 'parked' OR doubt_since IS NOT NULL),
    CONSTRAINT dead_letters_travel CHECK ((doubt_since IS NULL) = (in_flight_until IS NULL))
) STRICT;

-- A page of one queue's letters, of all, and of one code. Letters are kept forever, so no list may sort them.
CREATE INDEX ichido_dead_letters_newest ON ichido_dead_letters (state, closed, queue, since DESC, message_id DESC);
CREATE INDEX ichido_dead_letters_newest_of_all ON ichido_dead_letters (state, closed, since DESC, message_id DESC);
CREATE INDEX ichido_dead_letters_code ON ichido_dead_letters (state, closed, code, since DESC, message_id DESC) WHERE code IS NOT NULL;

-- Every transition and operator action, append-only. An attempt is one row: `claimed_at` is its
-- queued -> sending, `at` its end. An operator's action gets its own fence, so fences order a timeline.
CREATE TABLE ichido_events (
    message_id    BLOB    NOT NULL,
    fence         INTEGER NOT NULL,
    step          INTEGER NOT NULL, -- 1 for the second transition of one event (failed, then dead), 2 for a late success.
    claimed_at    INTEGER,
    at            INTEGER NOT NULL,
    from_state    TEXT    NOT NULL,
    to_state      TEXT    NOT NULL,
    kind          TEXT    NOT NULL, -- What happened: succeeded, failed, worker_died, requeued, ...
    attempts         INTEGER NOT NULL,
    deaths        INTEGER NOT NULL,
    doubt_since   INTEGER,
    in_flight_until INTEGER,
    effect        TEXT    NOT NULL,
    code          TEXT,
    status        INTEGER,
    result_digest BLOB,
    receipt       TEXT, -- The receiver's own reference, such as a broker's order id.
    excerpt       TEXT,
    node          BLOB,
    actor         TEXT,
    about         TEXT, -- The subject of an operator's action, if not a message: a queue, a key, letters. `message_id` is then the subject's.
    response_type TEXT,    -- The media type of the receiver's response to a success.
    response_bytes INTEGER, -- Its size, also if it was too large to keep; negative if it was not read to its end and has more.
    response      BLOB,    -- The response, whole or not at all. Last: a row is read up to the columns it needs.
    PRIMARY KEY (message_id, fence, step),
    CONSTRAINT events_effect CHECK (effect IN ('not_done', 'done', 'unknown') OR about IS NOT NULL AND effect = 'none'),
    CONSTRAINT events_states CHECK (
        about IS NOT NULL OR from_state IN ('queued', 'sending', 'failed', 'parked', 'sent', 'dead', 'cancelled')
        AND to_state IN ('queued', 'sending', 'failed', 'parked', 'sent', 'dead', 'cancelled'))
) STRICT, WITHOUT ROWID;

-- Operator actions on other subjects than messages. They are few among the entries and found only with this index.
CREATE INDEX ichido_events_actions ON ichido_events (fence) WHERE about IS NOT NULL AND kind <> 'keys_sealed';

-- Messages are found by the code of a failure. An entry without one, such as a success, costs nothing here.
CREATE INDEX ichido_events_code ON ichido_events (code, message_id) WHERE code IS NOT NULL;

-- Entries that no seal lists yet. SQLite has no index as cheap to write as PostgreSQL's BRIN,
-- and this table is small if seals are made.
CREATE TABLE ichido_unsealed (
    message_id BLOB    NOT NULL,
    fence      INTEGER NOT NULL,
    step       INTEGER NOT NULL,
    PRIMARY KEY (message_id, fence, step)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER ichido_events_unsealed AFTER INSERT ON ichido_events
BEGIN
    INSERT INTO ichido_unsealed (message_id, fence, step) VALUES (NEW.message_id, NEW.fence, NEW.step);
END;

-- Chained spans of entries, each under one code. A span whose entries were all deleted keeps root and count.
-- Positions count the sealed entries: with one writer, no commit is late.
CREATE TABLE ichido_seals (
    number         INTEGER NOT NULL PRIMARY KEY,
    since_position INTEGER NOT NULL,
    until_position INTEGER NOT NULL, -- Exclusive.
    sealed_at      INTEGER NOT NULL,
    first_at       INTEGER NOT NULL,
    last_at        INTEGER NOT NULL,
    count          INTEGER NOT NULL,
    total          INTEGER NOT NULL, -- The sum over all seals up to this one.
    root           BLOB    NOT NULL,
    previous       BLOB    NOT NULL,
    keyed          INTEGER NOT NULL CHECK (keyed IN (0, 1)),
    mac            BLOB    NOT NULL,
    leaves         BLOB,             -- A leaf for each entry, to name an entry that was tampered with.
    pruned         BLOB,
    CONSTRAINT seals_codes CHECK (length(root) = 32 AND length(previous) = 32 AND length(mac) = 32),
    CONSTRAINT seals_pruned CHECK ((leaves IS NULL) = (pruned IS NOT NULL))
) STRICT;

-- Messages that were deleted with sealed entries, which explains why those are missing. A row is deleted when the last seal that lists its entries is pruned.
CREATE TABLE ichido_forgotten (
    message_id BLOB    NOT NULL PRIMARY KEY,
    at         INTEGER NOT NULL,
    entries    INTEGER NOT NULL,
    listed     INTEGER NOT NULL, -- How many of its entries a seal still lists.
    mac        BLOB    NOT NULL,
    CONSTRAINT forgotten_mac CHECK (length(mac) = 32)
) STRICT, WITHOUT ROWID;

-- Lists of settled key records, each with the code of its contents. An entry of `ichido_events` whose `message_id` is the list's
-- id has the root of the list. A list is deleted when its last record has expired.
CREATE TABLE ichido_sealed_keys (
    until_at INTEGER NOT NULL, -- When its last record expires.
    since_at INTEGER NOT NULL, -- When its first record expires.
    id       BLOB    NOT NULL,
    records  BLOB    NOT NULL,
    PRIMARY KEY (until_at, since_at, id)
) STRICT;

-- Equal content within a window is one action, whatever its key.
CREATE TABLE ichido_contents (
    queue      TEXT    NOT NULL,
    identity   TEXT    NOT NULL,
    content    BLOB    NOT NULL,
    message_id BLOB    NOT NULL,
    until      INTEGER NOT NULL,
    PRIMARY KEY (queue, identity, content)
) STRICT, WITHOUT ROWID;

CREATE INDEX ichido_contents_until ON ichido_contents (until);

CREATE TABLE ichido_queues (
    name       TEXT    NOT NULL PRIMARY KEY,
    paused     INTEGER NOT NULL CHECK (paused IN (0, 1)),
    paused_by  TEXT,
    changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Counts are updated in place: there is one writer, so nobody waits for a count's row, and no table of deltas is needed.
CREATE TABLE ichido_counts (
    queue TEXT    NOT NULL,
    state TEXT    NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (queue, state)
) STRICT, WITHOUT ROWID;

-- A destination's pace, shared by all nodes; `version` is for compare and swap.
CREATE TABLE ichido_destinations (
    name    TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    pace    BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ichido_nodes (
    id         BLOB    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    locked     INTEGER NOT NULL DEFAULT 0 CHECK (locked IN (0, 1)), -- Its process holds a lock on a file that is named after its id.
    deaths     INTEGER NOT NULL DEFAULT 0, -- How often others declared it dead. It learns of it by its next heartbeat.
    gone       INTEGER NOT NULL DEFAULT 0 CHECK (gone IN (0, 1))    -- It stopped, or was declared dead, and sent no heartbeat since.
) STRICT, WITHOUT ROWID;

-- Rows are kept: the search for dead nodes reads those that may live.
CREATE INDEX ichido_nodes_living ON ichido_nodes (gone, seen_at) WHERE gone = 0;

-- The kind of key that a queue's calls carry, as set by its first worker: the same on every attempt.
CREATE TABLE ichido_queue_keys (
    queue TEXT NOT NULL PRIMARY KEY,
    kind  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Which node holds which singleton task.
CREATE TABLE ichido_singleton_tasks (
    task        TEXT    NOT NULL PRIMARY KEY,
    node        BLOB    NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- API tokens. Only the hash of a token's secret is stored.
CREATE TABLE ichido_tokens (
    id         BLOB    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    role       TEXT    NOT NULL,
    identity   TEXT,             -- The identity a producer enqueues for, and
    queues     TEXT,             -- its queues: names separated by spaces, which no name contains.
    hash       BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    CONSTRAINT tokens_role CHECK (role IN ('viewer', 'operator', 'admin', 'producer')),
    CONSTRAINT tokens_producer CHECK ((role = 'producer') = (identity IS NOT NULL AND queues IS NOT NULL)),
    CONSTRAINT tokens_hash CHECK (length(hash) = 32)
) STRICT;

-- A new message becomes claimable, or scheduled, in the statement that inserts it: SQLite's statements write one
-- table, and a caller that stops between two of them and commits its own transaction would leave a message that nobody finds.
CREATE TRIGGER ichido_messages_placed AFTER INSERT ON ichido_messages
BEGIN
    INSERT INTO ichido_ready (queue, priority, message_id)
    SELECT NEW.queue, NEW.priority, NEW.id WHERE NEW.due IS NULL;
    INSERT INTO ichido_scheduled (message_id, queue, priority, state, due, suspect, attempts, deaths)
    SELECT NEW.id, NEW.queue, NEW.priority, 'queued', NEW.due, 0, 0, 0 WHERE NEW.due IS NOT NULL;
    INSERT INTO ichido_counts (queue, state, count) VALUES (NEW.queue, 'queued', 1)
    ON CONFLICT (queue, state) DO UPDATE SET count = count + 1;
END;

-- A message as one row. A due failed message is claimed like a queued one, and shown as failed until then.
-- SQLite has no LATERAL: a subquery finds the last event by its key and reads one index entry.
CREATE VIEW ichido_message AS
SELECT m.id, m.queue, m.identity, m.key AS idempotency_key, m.content_type, m.request, m.digest AS request_digest,
       CASE
           WHEN l.message_id IS NOT NULL THEN l.state
           WHEN s.message_id IS NOT NULL THEN s.state
           WHEN r.message_id IS NOT NULL THEN 'queued'
           WHEN e.to_state IN ('sent', 'cancelled') THEN e.to_state
           ELSE 'sending'
       END AS status,
       -- An attempt in flight counts; its event is written when it ends.
       coalesce(l.attempts, s.attempts, r.attempts, e.attempts + (e.to_state NOT IN ('sent', 'cancelled')), 1) AS attempts,
       max(coalesce(l.attempts, s.attempts, r.attempts, e.attempts + (e.to_state NOT IN ('sent', 'cancelled')), 1) - 1, 0) AS retry_count,
       m.max_attempts,
       CASE
           WHEN s.message_id IS NOT NULL THEN s.due
           WHEN r.message_id IS NOT NULL THEN coalesce(m.due, m.created_at)
       END AS next_attempt,
       f.code AS last_error,
       f.excerpt AS last_error_text,
       coalesce(e.effect, 'not_done') AS effect,
       m.priority, m.hops, m.trace, m.trace_id, m.item, m.replacement_of,
       m.created_at,
       coalesce(e.at, m.created_at) AS updated_at
FROM ichido_messages m
LEFT JOIN ichido_dead_letters l ON l.message_id = m.id
LEFT JOIN ichido_scheduled s ON s.message_id = m.id
LEFT JOIN ichido_ready r ON r.queue = m.queue AND r.priority = m.priority AND r.message_id = m.id
LEFT JOIN ichido_events e ON e.message_id = m.id
    AND (e.fence, e.step) = (SELECT x.fence, x.step FROM ichido_events x WHERE x.message_id = m.id ORDER BY x.fence DESC, x.step DESC LIMIT 1)
LEFT JOIN ichido_events f ON f.message_id = m.id
    AND (f.fence, f.step) = (SELECT x.fence, x.step FROM ichido_events x WHERE x.message_id = m.id AND x.code IS NOT NULL ORDER BY x.fence DESC, x.step DESC LIMIT 1);

-- Alerts: counters by the minute, and the incidents that they opened.

-- One row per minute and counter, summed over all nodes. Kept for as long as the longest window.
CREATE TABLE ichido_counters (
    minute INTEGER NOT NULL,
    about  TEXT    NOT NULL,
    kind   TEXT    NOT NULL,
    slot   INTEGER NOT NULL, -- The slot of a duration; otherwise 0.
    count  INTEGER NOT NULL,
    micros INTEGER NOT NULL, -- The sum of durations.
    PRIMARY KEY (minute, about, kind, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE ichido_alerts (
    id          BLOB    NOT NULL PRIMARY KEY,
    rule        TEXT    NOT NULL,
    about       TEXT    NOT NULL,
    opened_at   INTEGER NOT NULL,
    value       REAL    NOT NULL, -- At opening.
    samples     INTEGER NOT NULL,
    above       REAL    NOT NULL,
    window_for  INTEGER,          -- The window in microseconds.
    clear_since INTEGER,
    resolved_at INTEGER,
    CONSTRAINT alerts_resolved CHECK (resolved_at IS NULL OR clear_since IS NOT NULL)
) STRICT;

-- One incident at a time: if two nodes open it, one succeeds.
CREATE UNIQUE INDEX ichido_alerts_open ON ichido_alerts (rule, about) WHERE resolved_at IS NULL;
CREATE INDEX ichido_alerts_newest ON ichido_alerts (opened_at DESC, id DESC);
CREATE INDEX ichido_alerts_over ON ichido_alerts (resolved_at) WHERE resolved_at IS NOT NULL;

-- Answers of models, kept until a person deletes them.

-- One row per question, created before it is first asked. A row without an answer shows whether a run is asking now, and how many
-- calls were started whose outcome is unknown: they may have been billed.
CREATE TABLE ichido_answers (
    id          BLOB    NOT NULL PRIMARY KEY,
    topic       TEXT    NOT NULL, -- Answers are deleted by topic.
    created_at  INTEGER NOT NULL,
    holder      BLOB,             -- The run with a call in flight.
    held_until  INTEGER,
    lost        INTEGER NOT NULL,
    answer      BLOB,
    answered_at INTEGER,
    CONSTRAINT answers_held CHECK ((holder IS NULL) = (held_until IS NULL)),
    CONSTRAINT answers_answered CHECK ((answer IS NULL) = (answered_at IS NULL) AND (answer IS NULL OR holder IS NULL))
) STRICT;

CREATE INDEX ichido_answers_topic ON ichido_answers (topic);
CREATE INDEX ichido_answers_holder ON ichido_answers (holder) WHERE holder IS NOT NULL;

-- Facts that workers publish about their queues, for commands without a configuration.

-- One row per queue and node. Rows of lost nodes are kept while no other node serves the queue, so the last facts of a
-- queue are known when no worker runs.
CREATE TABLE ichido_queue_facts (
    queue        TEXT    NOT NULL,
    node         BLOB    NOT NULL,
    guarantee    TEXT    NOT NULL,
    keeps_for    INTEGER,          -- Microseconds.
    requeue      INTEGER NOT NULL CHECK (requeue IN (0, 1)),
    max_attempts INTEGER NOT NULL,
    horizon      INTEGER NOT NULL, -- Microseconds.
    ended        INTEGER NOT NULL CHECK (ended IN (0, 1)), -- The node has stopped: its facts count only if no node is alive.
    PRIMARY KEY (queue, node),
    CONSTRAINT queue_facts_guarantee CHECK (guarantee IN ('none', 'idempotent', 'keyed', 'transactional')),
    CONSTRAINT queue_facts_keeps_for CHECK ((guarantee = 'keyed') = (keeps_for IS NOT NULL)),
    CONSTRAINT queue_facts_max_attempts CHECK (0 < max_attempts)
) STRICT, WITHOUT ROWID;
