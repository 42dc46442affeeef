-- Alerts: what is counted by the minute, and the incidents that were opened over it (SPEC A15).

-- One row a minute for each thing that is counted, added up by all nodes. Kept for as long as the longest window looks back.
CREATE TABLE ichido.tallies (
    minute timestamptz      NOT NULL,
    about  text COLLATE "C" NOT NULL,
    kind   text COLLATE "C" NOT NULL,
    slot   smallint         NOT NULL, -- Of durations: which of them. Else 0.
    count  bigint           NOT NULL,
    micros bigint           NOT NULL, -- Of durations: all together.
    PRIMARY KEY (minute, about, kind, slot)
);

CREATE TABLE ichido.alerts (
    id          uuid             NOT NULL PRIMARY KEY,
    rule        text COLLATE "C" NOT NULL,
    about       text COLLATE "C" NOT NULL,
    opened_at   timestamptz      NOT NULL,
    value       double precision NOT NULL, -- When it was opened.
    samples     bigint           NOT NULL,
    above       double precision NOT NULL,
    window_for  bigint,                    -- Microseconds that it looked back.
    clear_since timestamptz,
    resolved_at timestamptz,
    CONSTRAINT alerts_resolved CHECK (resolved_at IS NULL OR clear_since IS NOT NULL)
);

-- One incident at a time: of two nodes that open it, one does.
CREATE UNIQUE INDEX alerts_open ON ichido.alerts (rule, about) WHERE resolved_at IS NULL;
CREATE INDEX alerts_newest ON ichido.alerts (opened_at DESC, id DESC);
CREATE INDEX alerts_over ON ichido.alerts (resolved_at) WHERE resolved_at IS NOT NULL;
