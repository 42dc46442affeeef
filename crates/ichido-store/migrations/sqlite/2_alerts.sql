-- Alerts: counters by the minute, and the incidents that they opened.

-- One row per minute and counter, summed over all nodes. Kept for as long as the longest window.
CREATE TABLE ichido_tallies (
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
