-- How many messages of a queue each worker runs at the same time, where an operator changed it.
CREATE TABLE ichido_queue_parallelism (
    queue       TEXT    NOT NULL PRIMARY KEY,
    parallelism INTEGER NOT NULL,
    set_by      TEXT,
    set_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
