-- What all seals list, for the time of one audit and seen by it alone.
CREATE TEMP TABLE IF NOT EXISTS ichido_listed (
    message_id BLOB    NOT NULL,
    fence      INTEGER NOT NULL,
    step       INTEGER NOT NULL,
    PRIMARY KEY (message_id, fence, step)
) STRICT, WITHOUT ROWID
