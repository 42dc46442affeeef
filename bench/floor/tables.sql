-- The tables of the floors: the least that could hold the same work.
CREATE TABLE IF NOT EXISTS floor_messages (
    id uuid PRIMARY KEY, queue text NOT NULL, identity text NOT NULL, key text NOT NULL, digest bytea NOT NULL,
    content_type text NOT NULL, request bytea NOT NULL, trace text, priority smallint NOT NULL, max_attempts integer NOT NULL,
    due timestamptz, replacement_of uuid, created_at timestamptz NOT NULL,
    UNIQUE (queue, identity, key)
);
CREATE TABLE IF NOT EXISTS floor_ledger (
    name bytea PRIMARY KEY, fingerprint bytea NOT NULL, state text NOT NULL, fence bigint NOT NULL, lease_until timestamptz,
    status smallint, body bytea, created_at timestamptz NOT NULL, expires_at timestamptz
);
CREATE TABLE IF NOT EXISTS floor_plain (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue text NOT NULL, status text NOT NULL, request bytea NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS floor_plain_queued ON floor_plain (queue, id) WHERE status = 'queued';
CREATE TABLE IF NOT EXISTS floor_body (id bigint PRIMARY KEY, request bytea NOT NULL);
CREATE TABLE IF NOT EXISTS floor_ready (id bigint PRIMARY KEY);
CREATE TABLE IF NOT EXISTS floor_lease (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, until timestamptz NOT NULL, ids bigint[] NOT NULL);
