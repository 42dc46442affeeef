-- The tables of SQLite's floors: the columns of the store's own, with nothing but what makes a row unique.
CREATE TABLE floor_messages (
    id BLOB NOT NULL PRIMARY KEY, queue TEXT NOT NULL, identity TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL,
    content_type TEXT NOT NULL, request BLOB NOT NULL, trace TEXT, priority INTEGER NOT NULL, max_attempts INTEGER NOT NULL,
    due INTEGER, replacement_of BLOB, created_at INTEGER NOT NULL,
    UNIQUE (queue, identity, key)
) STRICT;
CREATE TABLE floor_ready (
    queue TEXT NOT NULL, priority INTEGER NOT NULL, message_id BLOB NOT NULL,
    PRIMARY KEY (queue, priority, message_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE floor_ledger (
    name BLOB NOT NULL PRIMARY KEY, operation TEXT NOT NULL, identity TEXT NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL,
    request_digest BLOB NOT NULL, state TEXT NOT NULL, fence INTEGER NOT NULL, claim_id BLOB NOT NULL, lease_until INTEGER,
    status INTEGER, headers BLOB, body BLOB, result_digest BLOB, message_id BLOB, created_at INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL, completed_at INTEGER, expires_at INTEGER
) STRICT;
