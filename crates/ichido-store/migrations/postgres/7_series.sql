-- Series: counters by the minute for 25 hours, by the hour for 90 days.

-- The minutes of one subject; alerts read all subjects of a minute by the primary key.
CREATE INDEX counters_about ON ichido.counters (about, minute);

-- The sums of finished hours. The latest hour of any subject tells how far the minutes were rolled up.
CREATE TABLE ichido.counter_hours (
    about  text COLLATE "C" NOT NULL,
    hour   timestamptz      NOT NULL,
    kind   text COLLATE "C" NOT NULL,
    slot   smallint         NOT NULL, -- The slot of a duration; otherwise 0.
    count  bigint           NOT NULL,
    micros bigint           NOT NULL, -- The sum of durations.
    PRIMARY KEY (about, hour, kind, slot)
);

CREATE INDEX counter_hours_hour ON ichido.counter_hours (hour);
