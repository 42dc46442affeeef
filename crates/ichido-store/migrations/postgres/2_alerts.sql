-- Alerts: counters by the minute, and the incidents that they opened.

-- One row per minute and counter, summed over all nodes. Kept for as long as the longest window.
CREATE TABLE ichido.tallies (
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
