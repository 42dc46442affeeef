-- Series: counters by the minute for 25 hours, by the hour for 90 days.

-- The minutes of one subject, with all columns: a day of them is read at once. Alerts read all subjects of a minute by the primary key.
CREATE INDEX ichido_counters_about ON ichido_counters (about, minute, kind, slot, count, micros);

-- The sums of finished hours. The latest hour of any subject tells how far the minutes were rolled up.
CREATE TABLE ichido_counter_hours (
    about  TEXT    NOT NULL,
    hour   INTEGER NOT NULL,
    kind   TEXT    NOT NULL,
    slot   INTEGER NOT NULL, -- The slot of a duration; otherwise 0.
    count  INTEGER NOT NULL,
    micros INTEGER NOT NULL, -- The sum of durations.
    PRIMARY KEY (about, hour, kind, slot)
) STRICT, WITHOUT ROWID;

CREATE INDEX ichido_counter_hours_hour ON ichido_counter_hours (hour);
