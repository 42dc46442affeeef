-- How often the stored response of a key was replayed, or a message was enqueued again. A row is kept for 90 days after the first time.
CREATE TABLE ichido.replays (
    about    uuid        NOT NULL PRIMARY KEY, -- A message, or the audit trail's subject of a key.
    count    bigint      NOT NULL,
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX replays_first_at ON ichido.replays (first_at);
