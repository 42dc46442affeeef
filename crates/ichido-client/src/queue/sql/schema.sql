-- The queue's tables, version 1. The application_id marks the file as ours; the user_version is its version.

-- The last clock reading, and the time that has passed by it (src/queue/age.rs).
CREATE TABLE watch (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    last_us   INTEGER NOT NULL,
    passed_us INTEGER NOT NULL CHECK (0 <= passed_us),
    set_backs INTEGER NOT NULL CHECK (0 <= set_backs)
) STRICT;

-- Accepted entries that are not known to be done. Tokens are never stored; bodies are stored in plain text.
CREATE TABLE entry (
    -- The order of acceptance. Never reused, so a person's decision concerns the entry they saw.
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    destination TEXT NOT NULL,
    method      TEXT NOT NULL,
    path        TEXT NOT NULL,
    -- The value of the header Ichido-Identity, or empty: the same key of another identity is another action.
    identity    TEXT NOT NULL,
    key         TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    -- `name: value` and CRLF for each header.
    headers     BLOB NOT NULL,
    body        BLOB NOT NULL,
    created_us  INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('waiting', 'sending', 'failed', 'held')),
    -- Failed attempts, and all sends, since a person's last decision.
    attempts    INTEGER NOT NULL CHECK (0 <= attempts),
    sends       INTEGER NOT NULL CHECK (0 <= sends),
    -- All sends ever: the number of the next attempt is one more.
    sends_all   INTEGER NOT NULL CHECK (0 <= sends_all),
    first_sent_us        INTEGER,
    first_sent_passed_us INTEGER,
    first_sent_set_backs INTEGER,
    due_passed_us        INTEGER NOT NULL CHECK (0 <= due_passed_us),
    -- Who starts the next attempt.
    cause       TEXT NOT NULL CHECK (cause IN ('manual', 'auto')),
    is_released INTEGER NOT NULL CHECK (is_released IN (0, 1)),
    effect      TEXT NOT NULL CHECK (effect IN ('not_done', 'unknown', 'done')),
    -- Why it failed, is held, or waits for another attempt.
    code        TEXT,
    reason      TEXT,
    CHECK ((first_sent_us IS NULL) = (first_sent_passed_us IS NULL)),
    CHECK ((first_sent_us IS NULL) = (first_sent_set_backs IS NULL)),
    CHECK ((code IS NULL) = (reason IS NULL)),
    CHECK (state != 'sending' OR first_sent_us IS NOT NULL),
    CHECK (state NOT IN ('failed', 'held') OR reason IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX entry_action ON entry (destination, method, path, identity, key);
CREATE INDEX entry_open ON entry (destination, id) WHERE state IN ('waiting', 'sending');
