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
    CONSTRAINT queue_facts_guarantee CHECK (guarantee IN ('nothing', 'repeatable', 'honours_keys')),
    CONSTRAINT queue_facts_keeps_for CHECK ((guarantee = 'honours_keys') = (keeps_for IS NOT NULL)),
    CONSTRAINT queue_facts_max_attempts CHECK (0 < max_attempts)
) STRICT, WITHOUT ROWID;
