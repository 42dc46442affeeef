-- How many messages of a queue each worker runs at the same time, where an operator changed it.
CREATE TABLE ichido.queue_parallelism (
    queue       text        NOT NULL PRIMARY KEY,
    parallelism bigint      NOT NULL,
    set_by      text,
    set_at      timestamptz NOT NULL
);
