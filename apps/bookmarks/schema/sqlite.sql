-- The app's own tables, in the same file as the engine's: a bookmark, the response under its key and the message for its first job
-- commit together. Times are microseconds since 1970, as in the engine's tables. Ids are time-ordered UUIDs.

CREATE TABLE IF NOT EXISTS people (
    id         BLOB    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    token_hash BLOB    NOT NULL CHECK (length(token_hash) = 32),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS sessions (
    id         BLOB    NOT NULL PRIMARY KEY,
    person_id  BLOB    NOT NULL REFERENCES people (id),
    hash       BLOB    NOT NULL CHECK (length(hash) = 32),
    expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS sessions_expiry ON sessions (expires_at);

CREATE TABLE IF NOT EXISTS bookmarks (
    number          INTEGER PRIMARY KEY, -- Its row in bookmark_words.
    id              BLOB    NOT NULL UNIQUE,
    person_id       BLOB    NOT NULL REFERENCES people (id),
    url             TEXT    NOT NULL, -- In canonical form.
    idempotency_key TEXT    NOT NULL, -- The key of the request that saved it.
    source_hint     TEXT,
    created_from    TEXT,
    created_at      INTEGER NOT NULL,
    title           TEXT,             -- The page's, or the client's until the page is read.
    edited_title    TEXT,             -- The person's own. It is shown instead.
    tags            TEXT    NOT NULL DEFAULT '[]', -- JSON.
    icon            BLOB,
    text            TEXT,             -- The text of the page, to summarise and to search.
    summary         TEXT,
    summary_by      TEXT CHECK (summary_by IN ('model', 'extract')),
    jobs            INTEGER NOT NULL DEFAULT 0, -- The number of retries, part of the next job's key.
    job             BLOB    NOT NULL, -- The message of its current job, the only one that may write to it.
    CONSTRAINT bookmarks_summary CHECK ((summary IS NULL) = (summary_by IS NULL))
) STRICT;

CREATE INDEX IF NOT EXISTS bookmarks_newest ON bookmarks (person_id, id DESC);
-- A person's newest jobs, which decide whose turn it is.
CREATE INDEX IF NOT EXISTS bookmarks_newest_job ON bookmarks (person_id, job DESC);
-- The bookmark of a failed job.
CREATE INDEX IF NOT EXISTS bookmarks_job ON bookmarks (job);

-- The bookmark of a URL, which a second save returns. A separate row, so two concurrent saves meet on it.
CREATE TABLE IF NOT EXISTS saved_urls (
    person_id   BLOB    NOT NULL,
    url         TEXT    NOT NULL,
    bookmark_id BLOB    NOT NULL,
    PRIMARY KEY (person_id, url)
) STRICT, WITHOUT ROWID;

-- The icon of a host, fetched once per person; without media if the host has none. Nothing is shared between people, so nobody learns
-- which hosts another person has saved.
CREATE TABLE IF NOT EXISTS icons (
    id         BLOB    NOT NULL PRIMARY KEY,
    person_id  BLOB    NOT NULL REFERENCES people (id),
    host       TEXT    NOT NULL, -- With its scheme and port.
    fetched_at INTEGER NOT NULL,
    media      TEXT,
    bytes      BLOB,
    UNIQUE (person_id, host)
) STRICT, WITHOUT ROWID;

-- The words of each bookmark, made by src/search/tokens.rs: FTS5 only splits them at blanks. The person's id is one of them, so a search
-- reads one person's rows. The words alone are stored, not the text, and deleted with their bookmark. A word's beginning has an index of
-- its own: without it a search for a few letters merges the lists of all words that begin with them.
CREATE VIRTUAL TABLE IF NOT EXISTS bookmark_words USING fts5 (
    person, title, tags, url, summary, text,
    content = '', contentless_delete = 1, prefix = '2 3 4 5 6', tokenize = "ascii tokenchars '#_'"
);

CREATE TRIGGER IF NOT EXISTS bookmark_words_deleted AFTER DELETE ON bookmarks BEGIN
    DELETE FROM bookmark_words WHERE rowid = old.number;
END;

-- Views are recreated at every start, so they always match this release.
DROP VIEW IF EXISTS bookmark_now;
DROP VIEW IF EXISTS failed_jobs;

-- A bookmark with the engine's data about its job. A join would read all messages: SQLite does not look up single rows of a view that
-- is joined from the left.
CREATE VIEW bookmark_now AS
SELECT b.id, b.person_id, b.url, coalesce(b.edited_title, b.title) AS title, b.title AS page_title, b.tags, b.icon, b.summary, b.summary_by, b.source_hint,
       b.created_from, b.created_at, b.job,
       (SELECT queue FROM ichido_message WHERE id = b.job) AS job_type,
       (SELECT status FROM ichido_message WHERE id = b.job) AS status,
       (SELECT attempts FROM ichido_message WHERE id = b.job) AS attempts,
       (SELECT max_attempts FROM ichido_message WHERE id = b.job) AS max_attempts,
       (SELECT next_attempt FROM ichido_message WHERE id = b.job AND status = 'failed') AS retry_at,
       (SELECT last_error_text FROM ichido_message WHERE id = b.job AND status IN ('failed', 'dead')) AS error
FROM bookmarks b;

-- The open failures of this app: the dead letters of jobs that nobody has retried, replaced or discarded. The message begins with
-- the error's code, and the payload has the number of the last attempt. For people: ids and times are text here.
CREATE VIEW failed_jobs AS
SELECT lower(substr(hex(m.id), 1, 8) || '-' || substr(hex(m.id), 9, 4) || '-' || substr(hex(m.id), 13, 4) || '-' ||
             substr(hex(m.id), 17, 4) || '-' || substr(hex(m.id), 21)) AS id,
       json_extract(CAST(m.request AS TEXT), '$.bookmark_id') AS bookmark_id,
       m.queue AS job_type,
       m.last_error_text AS error_message,
       json_set(CAST(m.request AS TEXT), '$.attempt', l.attempts) AS payload,
       strftime('%Y-%m-%dT%H:%M:%fZ', l.since / 1000000.0, 'unixepoch') AS failed_at,
       coalesce(substr(m.last_error_text, 1, instr(m.last_error_text, ':') - 1), '')
           NOT IN ('page_not_found', 'page_refused', 'page_not_text', 'address_refused') AS retryable
FROM bookmarks b
JOIN ichido_dead_letters l ON l.message_id = b.job AND l.state = 'dead' AND l.closed = 'open'
JOIN ichido_message m ON m.id = l.message_id;
