-- Collects the entries that all seals list, for one audit and visible to it alone.
CREATE TEMP TABLE IF NOT EXISTS ichido_listed (
    message_id BLOB    NOT NULL,
    fence      INTEGER NOT NULL,
    step       INTEGER NOT NULL,
    PRIMARY KEY (message_id, fence, step)
) STRICT, WITHOUT ROWID
