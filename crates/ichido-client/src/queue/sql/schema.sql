-- The queue's tables, version 1. A file is ours by its application_id, and this old by its user_version.

-- The clock as it was read last, and what has passed by it (src/queue/age.rs).
CREATE TABLE watch (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    last_us   INTEGER NOT NULL,
    passed_us INTEGER NOT NULL CHECK (0 <= passed_us),
    set_backs INTEGER NOT NULL CHECK (0 <= set_backs)
) STRICT;

-- What was accepted and is not known to be done. No token is ever in here; bodies are, as they are.
CREATE TABLE entry (
    -- The order of acceptance. Never used twice, so that a person's word is about what they saw.
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    destination TEXT NOT NULL,
    method      TEXT NOT NULL,
    path        TEXT NOT NULL,
    -- Whom the header field Ichido-Identity names, or nobody: the same key of another is another action.
    identity    TEXT NOT NULL,
    key         TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    -- `name: value` and CRLF for each.
    headers     BLOB NOT NULL,
    body        BLOB NOT NULL,
    created_us  INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('waiting', 'sending', 'failed', 'held')),
    -- Failed tries, and all sends, since a person's last word.
    attempts    INTEGER NOT NULL CHECK (0 <= attempts),
    sends       INTEGER NOT NULL CHECK (0 <= sends),
    -- All sends there were: the number of the next try is one more.
    sends_all   INTEGER NOT NULL CHECK (0 <= sends_all),
    first_sent_us        INTEGER,
    first_sent_passed_us INTEGER,
    first_sent_set_backs INTEGER,
    due_passed_us        INTEGER NOT NULL CHECK (0 <= due_passed_us),
    -- Who begins the next try.
    cause       TEXT NOT NULL CHECK (cause IN ('manual', 'auto')),
    is_released INTEGER NOT NULL CHECK (is_released IN (0, 1)),
    effect      TEXT NOT NULL CHECK (effect IN ('not_done', 'unknown', 'done')),
    -- Why it failed, is held, or waits for another try.
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
