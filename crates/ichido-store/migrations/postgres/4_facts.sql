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
    CONSTRAINT queue_facts_guarantee CHECK (guarantee IN ('nothing', 'repeatable', 'honours_keys')),
    CONSTRAINT queue_facts_keeps_for CHECK ((guarantee = 'honours_keys') = (keeps_for IS NOT NULL)),
    CONSTRAINT queue_facts_max_attempts CHECK (0 < max_attempts)
);
