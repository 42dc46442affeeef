-- How often the stored response of a key was replayed, or a message was enqueued again. A row is kept for 90 days after the first time.
CREATE TABLE ichido_replays (
    about    BLOB    NOT NULL PRIMARY KEY, -- A message, or the audit trail's subject of a key.
    count    INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ichido_replays_first_at ON ichido_replays (first_at);
