-- The ledger and the outbox. Hot tables are small and narrow; large rows are written once.
--
-- Times are the database's clock plus the store's skew, and are always bound or computed, never defaulted,
-- so no row mixes two clocks. States are text: people read them, and the cost is not measurable.
--
-- The tables that every message passes through (messages, leases, events) have no CHECK constraints: PostgreSQL reads and plans
-- them again for each statement, which cost a single enqueue more than its row. The store's types are the check: they are the only
-- source of these rows, and a row with another state, effect or digest is an error when it is read. SQLite compiles its checks with
-- the statement, and keeps them.

CREATE SEQUENCE ichido.fence AS bigint CACHE 1; -- No cache: fences of two connections must not go back.

CREATE TABLE ichido.ledger (
    name           bytea       NOT NULL PRIMARY KEY, -- A hash of operation, identity and key, never client text.
    operation      text COLLATE "C"        NOT NULL,
    identity       text COLLATE "C"        NOT NULL,
    key            text COLLATE "C"        NOT NULL,
    fingerprint    bytea       NOT NULL,
    request_digest bytea       NOT NULL,
    guarantee           text        NOT NULL, -- The strictest mode it was claimed under: the operation's mode may change later.
    state          text        NOT NULL,
    fence          bigint      NOT NULL,
    claim_id       uuid        NOT NULL, -- Identifies the claiming attempt, which recognizes its own claim after a lost response.
    lease_until    timestamptz,
    status         smallint,
    headers        bytea,
    body           bytea,
    result_digest  bytea,
    message_id     uuid,
    created_at     timestamptz NOT NULL, -- First claimed for this action.
    claimed_at     timestamptz NOT NULL, -- Last claimed.
    completed_at   timestamptz, -- When it was settled. Of an unknown outcome: when its call was answered, if it was.
    expires_at     timestamptz,
    hops           text,                 -- The hops of the request, from its header; bounded.
    trace          text
    -- No CHECK: PostgreSQL parses and plans each one again for every statement, which took a third of a claim's time and half of
    -- a settle's. Every reader checks the record instead: the states, and which columns each of them has.
) WITH (fillfactor = 70); -- A claimed row is updated once, when settled: this leaves room on the same page.

CREATE INDEX ledger_expiry ON ichido.ledger (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX ledger_lapse ON ichido.ledger (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX ledger_unknown ON ichido.ledger (created_at, name) WHERE state = 'unknown';

-- Stores one outcome in a caller's own transaction: it must change one row, or the caller rolls back.
--
-- A function, because the connection is the caller's. Its cached plans may be from when the ledger was small and a full scan
-- was the cheapest plan; scans are disabled here, for this statement alone. A response must also mean durable: a
-- transaction that would commit without waiting for the disk is made to wait; a stricter setting is kept.
CREATE FUNCTION ichido.key_settle(
    of_name bytea, of_fence bigint, to_state text, to_status smallint, to_headers bytea, to_body bytea, to_digest bytea,
    to_message uuid, ttl bigint, skew bigint
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    now_at CONSTANT timestamptz := clock_timestamp() + skew * interval '1 microsecond';
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    UPDATE ichido.ledger l
    SET state = to_state, lease_until = NULL, status = to_status, headers = to_headers, body = to_body, result_digest = to_digest,
        message_id = to_message, completed_at = now_at, expires_at = now_at + ttl * interval '1 microsecond'
    WHERE l.name = of_name AND l.fence = of_fence AND l.state IN ('claimed', 'unknown');
    RETURN FOUND;
END
$$;

-- The requests: written once, never updated.
CREATE TABLE ichido.messages (
    id            uuid        NOT NULL PRIMARY KEY, -- UUIDv7: new rows go to the end of the index.
    queue         text COLLATE "C"        NOT NULL,
    identity      text COLLATE "C"        NOT NULL,
    key           text COLLATE "C"        NOT NULL,
    digest        bytea       NOT NULL,
    content_type  text        NOT NULL,
    request       bytea       NOT NULL,
    trace         text,
    priority      smallint    NOT NULL,
    max_attempts integer     NOT NULL,
    due           timestamptz,           -- The earliest time to send; NULL is at once.
    replacement_of     uuid,                  -- The dead message that this one replaces.
    created_at    timestamptz NOT NULL,
    hops          text,                  -- The hops of the request, from its header; bounded.
    trace_id      text COLLATE "C",      -- The correlation id in the request; bounded.
    item          text,                  -- What the message is about, for people: a title or URL in the request; bounded.
    CONSTRAINT messages_once UNIQUE (queue, identity, key)
);

-- Messages are found by trace id. One without costs nothing here.
CREATE INDEX messages_trace_id ON ichido.messages (trace_id, id) WHERE trace_id IS NOT NULL;

-- Claimable messages. A row is inserted and deleted, never updated, so its ctid is its own.
CREATE TABLE ichido.ready (
    queue       text COLLATE "C"        NOT NULL,
    priority    smallint    NOT NULL,
    message_id  uuid        NOT NULL,
    suspect     boolean     NOT NULL DEFAULT false, -- A worker died holding it with others: claim it alone.
    attempts       integer     NOT NULL DEFAULT 0,
    deaths      integer     NOT NULL DEFAULT 0,
    doubt_since timestamptz,
    in_flight_until timestamptz,
    last_fence  bigint,
    PRIMARY KEY (queue, priority, message_id) -- The order of claims: most urgent first, then oldest.
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

CREATE INDEX ready_suspect ON ichido.ready (queue, priority, message_id) WHERE suspect;

-- Messages that wait for their time: delayed ones, and failed ones between two attempts.
CREATE TABLE ichido.scheduled (
    message_id  uuid        NOT NULL PRIMARY KEY,
    queue       text COLLATE "C"        NOT NULL,
    priority    smallint    NOT NULL,
    state       text        NOT NULL,
    due         timestamptz NOT NULL,
    suspect     boolean     NOT NULL,
    attempts       integer     NOT NULL,
    deaths      integer     NOT NULL,
    doubt_since timestamptz,
    in_flight_until timestamptz,
    last_fence  bigint,
    CONSTRAINT scheduled_state CHECK (state IN ('queued', 'failed'))
);

CREATE INDEX scheduled_due ON ichido.scheduled (due);

-- Leases: one row for a whole claimed batch.
CREATE TABLE ichido.leases (
    fence       bigint      NOT NULL PRIMARY KEY,
    queue       text COLLATE "C"        NOT NULL,
    node        uuid        NOT NULL,
    claimed_at  timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    start_marks       boolean     NOT NULL, -- Whether the start of each call is marked in `start_marks`.
    suspect     boolean     NOT NULL, -- Whether it was claimed alone because a worker died with it.
    guarantee   text        NOT NULL, -- The holder's guarantee: the rescuer's configuration may differ.
    keeps_for   bigint,               -- Microseconds for which the receiver keeps keys.
    max_time_in_flight bigint      NOT NULL, -- Microseconds for which its holder's calls may be in flight.
    message_ids uuid[]      NOT NULL  -- Never empty.
);

-- Ids do not compress; the attempt costs a tenth of a claim.
ALTER TABLE ichido.leases ALTER COLUMN message_ids SET STORAGE EXTERNAL;

CREATE INDEX leases_lapse ON ichido.leases (lease_until);

-- The durable mark before an irreversible call: not started means not done.
CREATE TABLE ichido.start_marks (
    fence      bigint NOT NULL,
    message_id uuid   NOT NULL,
    PRIMARY KEY (fence, message_id)
);

-- Requests to cancel messages in flight; usually none. A row is deleted once no attempt is in flight any more.
CREATE TABLE ichido.cancellations (
    message_id   uuid        NOT NULL PRIMARY KEY,
    requested_at timestamptz NOT NULL,
    actor        text,
    reason       text
);

-- Dead and parked messages, separate from the hot tables and from history.
CREATE TABLE ichido.dead_letters (
    message_id  uuid        NOT NULL PRIMARY KEY,
    queue       text COLLATE "C"        NOT NULL,
    state       text        NOT NULL,
    effect      text        NOT NULL,
    code        text,
    error       text,
    since       timestamptz NOT NULL,
    attempts       integer     NOT NULL,
    deaths      integer     NOT NULL,
    doubt_since timestamptz,
    in_flight_until timestamptz,
    last_fence  bigint,
    closed      text        NOT NULL DEFAULT 'open', -- Whether a person has closed it: it is kept, and listed only on request.
    CONSTRAINT dead_letters_state CHECK (state IN ('dead', 'parked')),
    CONSTRAINT dead_letters_effect CHECK (effect IN ('not_done', 'done', 'unknown')),
    CONSTRAINT dead_letters_closed CHECK (closed = 'open' OR closed IN ('discarded', 'replaced') AND state = 'dead'),
    -- A parked message is in doubt, and a doubt has both timestamps.
    CONSTRAINT dead_letters_doubt CHECK (state <> 'parked' OR doubt_since IS NOT NULL),
    CONSTRAINT dead_letters_travel CHECK ((doubt_since IS NULL) = (in_flight_until IS NULL))
);

CREATE INDEX dead_letters_newest ON ichido.dead_letters (state, closed, queue, since DESC, message_id DESC);
CREATE INDEX dead_letters_newest_of_all ON ichido.dead_letters (state, closed, since DESC, message_id DESC);
CREATE INDEX dead_letters_code ON ichido.dead_letters (state, closed, code, since DESC, message_id DESC) WHERE code IS NOT NULL;

-- Every transition and operator action, append-only. An attempt is one row: `claimed_at` is its
-- queued -> sending, `at` its end. An operator's action gets its own fence, so fences order a timeline.
CREATE TABLE ichido.events (
    message_id    uuid        NOT NULL,
    fence         bigint      NOT NULL,
    step          smallint    NOT NULL, -- 1 for the second transition of one event (failed, then dead), 2 for a late success.
    claimed_at    timestamptz,
    at            timestamptz NOT NULL,
    from_state    text        NOT NULL,
    to_state      text        NOT NULL,
    kind          text        NOT NULL, -- What happened: succeeded, failed, worker_died, requeued, ...
    attempts         integer     NOT NULL,
    deaths        integer     NOT NULL,
    doubt_since   timestamptz,
    in_flight_until timestamptz,
    effect        text        NOT NULL,
    code          text,
    status        smallint,
    result_digest bytea,
    receipt       text, -- The receiver's own reference, such as a broker's order id.
    excerpt       text,
    node          uuid,
    actor         text,
    about         text, -- The subject of an operator's action, if not a message: a queue, a key, letters. `message_id` is then the subject's.
    -- The transaction that wrote it. Below the oldest running transaction nothing more can appear, whatever the clocks say:
    -- those entries can be sealed.
    position      bigint      NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    response      bytea,                -- The receiver's response to a success, whole or not at all.
    response_type text,                 -- Its media type.
    response_bytes integer,             -- Its size, also if it was too large to keep; negative if it was not read to its end and has more.
    PRIMARY KEY (message_id, fence, step)
);

-- New rows go to the end, and so do their positions: a BRIN index finds a span and adds almost no cost to a write.
CREATE INDEX events_position ON ichido.events USING brin (position) WITH (autosummarize = on);

-- Operator actions on other subjects than messages. They are few among the entries and found only with this index.
CREATE INDEX events_actions ON ichido.events (fence) WHERE about IS NOT NULL AND kind <> 'keys_sealed';

-- Messages are found by the code of a failure. An entry without one, such as a success, costs nothing here.
CREATE INDEX events_code ON ichido.events (code, message_id) WHERE code IS NOT NULL;

-- Chained spans of entries, each under one code. A span whose entries were all deleted keeps root and count.
CREATE TABLE ichido.seals (
    number         bigint      NOT NULL PRIMARY KEY,
    since_position bigint      NOT NULL,
    until_position bigint      NOT NULL, -- Exclusive.
    sealed_at      timestamptz NOT NULL,
    first_at       timestamptz NOT NULL,
    last_at        timestamptz NOT NULL,
    count          integer     NOT NULL,
    total          bigint      NOT NULL, -- The sum over all seals up to this one.
    root           bytea       NOT NULL,
    previous       bytea       NOT NULL,
    keyed          boolean     NOT NULL,
    mac            bytea       NOT NULL,
    leaves         bytea,                -- A leaf for each entry, to name an entry that was tampered with.
    pruned         bytea,
    CONSTRAINT seals_codes CHECK (octet_length(root) = 32 AND octet_length(previous) = 32 AND octet_length(mac) = 32),
    CONSTRAINT seals_pruned CHECK ((leaves IS NULL) = (pruned IS NOT NULL))
);

-- Hashes do not compress.
ALTER TABLE ichido.seals ALTER COLUMN leaves SET STORAGE EXTERNAL;

-- Messages that were deleted with sealed entries, which explains why those are missing. A row is deleted when the last seal that lists its entries is pruned.
CREATE TABLE ichido.forgotten (
    message_id uuid        NOT NULL PRIMARY KEY,
    at         timestamptz NOT NULL,
    entries    integer     NOT NULL,
    listed     integer     NOT NULL, -- How many of its entries a seal still lists.
    mac        bytea       NOT NULL,
    CONSTRAINT forgotten_mac CHECK (octet_length(mac) = 32)
);

-- Lists of settled key records, each with the code of its contents. An entry of `ichido.events` whose `message_id` is the list's
-- id has the root of the list. A list is deleted when its last record has expired.
CREATE TABLE ichido.sealed_keys (
    until_at timestamptz NOT NULL, -- When its last record expires.
    since_at timestamptz NOT NULL, -- When its first record expires.
    id       uuid        NOT NULL,
    records  bytea       NOT NULL,
    PRIMARY KEY (until_at, since_at, id)
);

-- The offset from a transaction's number to its position: a server restored from a dump counts from lower numbers.
CREATE TABLE ichido.position_base (
    one  boolean NOT NULL PRIMARY KEY DEFAULT true,
    base bigint  NOT NULL,
    CONSTRAINT position_base_one CHECK (one)
);

INSERT INTO ichido.position_base (base) VALUES (0);

-- Ensures that positions keep growing on a server restored from a dump. Called by each node that opens the store.
CREATE FUNCTION ichido.position_rebase() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    following bigint;
    reached bigint;
BEGIN
    SELECT base + pg_snapshot_xmax(pg_current_snapshot())::text::bigint INTO following FROM ichido.position_base;
    IF NOT EXISTS (SELECT 1 FROM ichido.events WHERE position > following)
        AND NOT EXISTS (SELECT 1 FROM ichido.seals WHERE until_position > following) THEN
        RETURN false;
    END IF;
    LOCK TABLE ichido.events, ichido.seals IN ACCESS EXCLUSIVE MODE;
    -- Checked again, because another node may have done it meanwhile.
    SELECT base + pg_snapshot_xmax(pg_current_snapshot())::text::bigint INTO following FROM ichido.position_base;
    SELECT greatest((SELECT max(position) FROM ichido.events), (SELECT max(until_position) FROM ichido.seals)) INTO reached;
    IF reached <= following THEN
        RETURN false;
    END IF;
    UPDATE ichido.position_base SET base = reached;
    EXECUTE format('ALTER TABLE ichido.events ALTER COLUMN position SET DEFAULT %s + pg_current_xact_id()::text::bigint', reached);
    RETURN true;
END
$$;

-- Equal content within a window is one action, whatever its key.
CREATE TABLE ichido.contents (
    queue      text COLLATE "C"        NOT NULL,
    identity   text COLLATE "C"        NOT NULL,
    content    bytea       NOT NULL,
    message_id uuid        NOT NULL,
    until      timestamptz NOT NULL,
    PRIMARY KEY (queue, identity, content)
);

CREATE INDEX contents_until ON ichido.contents (until);

CREATE TABLE ichido.queues (
    name      text        NOT NULL PRIMARY KEY,
    paused    boolean     NOT NULL,
    paused_by text,
    changed_at timestamptz NOT NULL
);

-- Counts are sums of deltas, inserted with the rows they count and folded by maintenance.
CREATE TABLE ichido.counts (
    queue text COLLATE "C"   NOT NULL,
    state text   NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (queue, state)
);

CREATE TABLE ichido.count_deltas (
    queue text COLLATE "C"    NOT NULL,
    state text    NOT NULL,
    delta integer NOT NULL
);

-- A destination's pace, shared by all nodes; `version` is for compare and swap.
CREATE TABLE ichido.destinations (
    name    text   NOT NULL PRIMARY KEY,
    version bigint NOT NULL,
    pace    bytea  NOT NULL
);

CREATE TABLE ichido.nodes (
    id         uuid        NOT NULL PRIMARY KEY,
    name       text        NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    locked     boolean     NOT NULL DEFAULT false, -- Its process holds a lock on a file that is named after its id: only on SQLite.
    deaths     integer     NOT NULL DEFAULT 0,     -- How often others declared it dead. It learns of it by its next heartbeat.
    gone       boolean     NOT NULL DEFAULT false  -- It stopped, or was declared dead, and sent no heartbeat since.
);

-- Rows are kept: the search for dead nodes reads those that may live. Not on `seen_at`, so a heartbeat changes no index.
CREATE INDEX nodes_living ON ichido.nodes (id) WHERE NOT gone;

-- The kind of key that a queue's calls carry, as set by its first worker: the same on every attempt.
CREATE TABLE ichido.queue_keys (
    queue text COLLATE "C" NOT NULL PRIMARY KEY,
    kind  text             NOT NULL
);

-- Which node holds which singleton task.
CREATE TABLE ichido.singleton_tasks (
    task        text COLLATE "C" NOT NULL PRIMARY KEY,
    node        uuid             NOT NULL,
    lease_until timestamptz      NOT NULL
);

-- API tokens. Only the hash of a token's secret is stored.
CREATE TABLE ichido.tokens (
    id         uuid        NOT NULL PRIMARY KEY,
    name       text        NOT NULL,
    role       text        NOT NULL,
    identity   text,                 -- The identity a producer enqueues for, and
    queues     text,                 -- its queues: names separated by spaces, which no name contains.
    hash       bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT tokens_role CHECK (role IN ('viewer', 'operator', 'admin', 'producer')),
    CONSTRAINT tokens_producer CHECK ((role = 'producer') = (identity IS NOT NULL AND queues IS NOT NULL)),
    CONSTRAINT tokens_hash CHECK (octet_length(hash) = 32)
);

-- A message as one row. A due failed message is claimed like a queued one, and shown as failed until then.
CREATE VIEW ichido.message AS
SELECT m.id, m.queue, m.identity, m.key AS idempotency_key, m.content_type, m.request, m.digest AS request_digest,
       now.status, now.attempts, greatest(now.attempts - 1, 0) AS retry_count,
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
FROM ichido.messages m
LEFT JOIN ichido.dead_letters l ON l.message_id = m.id
LEFT JOIN ichido.scheduled s ON s.message_id = m.id
LEFT JOIN ichido.ready r ON r.queue = m.queue AND r.priority = m.priority AND r.message_id = m.id
LEFT JOIN LATERAL (SELECT * FROM ichido.events WHERE message_id = m.id ORDER BY fence DESC, step DESC LIMIT 1) e ON true
CROSS JOIN LATERAL (
    SELECT CASE
               WHEN l.message_id IS NOT NULL THEN l.state
               WHEN s.message_id IS NOT NULL THEN s.state
               WHEN r.message_id IS NOT NULL THEN 'queued'
               WHEN e.to_state IN ('sent', 'cancelled') THEN e.to_state
               ELSE 'sending'
           END AS status
) st
CROSS JOIN LATERAL (
    -- An attempt in flight counts; its event is written when it ends.
    SELECT st.status, coalesce(l.attempts, s.attempts, r.attempts, e.attempts, 0) + CASE WHEN st.status = 'sending' THEN 1 ELSE 0 END AS attempts
) now
LEFT JOIN LATERAL (SELECT * FROM ichido.events WHERE message_id = m.id AND code IS NOT NULL ORDER BY fence DESC, step DESC LIMIT 1) f ON true;

-- Alerts: counters by the minute, and the incidents that they opened.

-- One row per minute and counter, summed over all nodes. Kept for as long as the longest window.
CREATE TABLE ichido.counters (
    minute timestamptz      NOT NULL,
    about  text COLLATE "C" NOT NULL,
    kind   text COLLATE "C" NOT NULL,
    slot   smallint         NOT NULL, -- The slot of a duration; otherwise 0.
    count  bigint           NOT NULL,
    micros bigint           NOT NULL, -- The sum of durations.
    PRIMARY KEY (minute, about, kind, slot)
);

CREATE TABLE ichido.alerts (
    id          uuid             NOT NULL PRIMARY KEY,
    rule        text COLLATE "C" NOT NULL,
    about       text COLLATE "C" NOT NULL,
    opened_at   timestamptz      NOT NULL,
    value       double precision NOT NULL, -- At opening.
    samples     bigint           NOT NULL,
    above       double precision NOT NULL,
    window_for  bigint,                    -- The window in microseconds.
    clear_since timestamptz,
    resolved_at timestamptz,
    CONSTRAINT alerts_resolved CHECK (resolved_at IS NULL OR clear_since IS NOT NULL)
);

-- One incident at a time: if two nodes open it, one succeeds.
CREATE UNIQUE INDEX alerts_open ON ichido.alerts (rule, about) WHERE resolved_at IS NULL;
CREATE INDEX alerts_newest ON ichido.alerts (opened_at DESC, id DESC);
CREATE INDEX alerts_over ON ichido.alerts (resolved_at) WHERE resolved_at IS NOT NULL;

-- Answers of models, kept until a person deletes them.

-- One row per question, created before it is first asked. A row without an answer shows whether a run is asking now, and how many
-- calls were started whose outcome is unknown: they may have been billed.
CREATE TABLE ichido.answers (
    id          bytea            NOT NULL PRIMARY KEY,
    topic       text COLLATE "C" NOT NULL, -- Answers are deleted by topic.
    created_at  timestamptz      NOT NULL,
    holder      uuid,                      -- The run with a call in flight.
    held_until  timestamptz,
    lost        integer          NOT NULL,
    answer      bytea,
    answered_at timestamptz,
    CONSTRAINT answers_held CHECK ((holder IS NULL) = (held_until IS NULL)),
    CONSTRAINT answers_answered CHECK ((answer IS NULL) = (answered_at IS NULL) AND (answer IS NULL OR holder IS NULL))
);

CREATE INDEX answers_topic ON ichido.answers (topic);
CREATE INDEX answers_holder ON ichido.answers (holder) WHERE holder IS NOT NULL;

-- Facts that workers publish about their queues, for commands without a configuration.

-- One row per queue and node. Rows of lost nodes are kept while no other node serves the queue, so the last facts of a
-- queue are known when no worker runs.
CREATE TABLE ichido.queue_facts (
    queue        text COLLATE "C" NOT NULL,
    node         uuid             NOT NULL,
    guarantee    text             NOT NULL,
    keeps_for    bigint,                    -- Microseconds.
    requeue      boolean          NOT NULL,
    max_attempts integer          NOT NULL,
    horizon      bigint           NOT NULL, -- Microseconds.
    ended        boolean          NOT NULL, -- The node has stopped: its facts count only if no node is alive.
    PRIMARY KEY (queue, node),
    CONSTRAINT queue_facts_guarantee CHECK (guarantee IN ('none', 'idempotent', 'keyed', 'transactional')),
    CONSTRAINT queue_facts_keeps_for CHECK ((guarantee = 'keyed') = (keeps_for IS NOT NULL)),
    CONSTRAINT queue_facts_max_attempts CHECK (0 < max_attempts)
);
