-- The app's own tables, beside the engine's in the same file: a bookmark, the answer under its key and the message that has it
-- summarised commit together. Times are microseconds since 1970, as the engine has them; ids are UUIDs, the newest greatest.

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
    id              BLOB    NOT NULL PRIMARY KEY,
    person_id       BLOB    NOT NULL REFERENCES people (id),
    url             TEXT    NOT NULL, -- In canonical form.
    idempotency_key TEXT    NOT NULL, -- Of the request that saved it.
    source_hint     TEXT,
    created_from    TEXT,
    created_at      INTEGER NOT NULL,
    title           TEXT,
    text            TEXT,             -- What the page says, for who summarises it.
    summary         TEXT,
    summary_by      TEXT CHECK (summary_by IN ('model', 'extract')),
    search          TEXT    NOT NULL, -- URL, title and summary in small letters.
    jobs            INTEGER NOT NULL DEFAULT 0, -- How many times it was given to the background.
    job             BLOB    NOT NULL, -- The message that stands for it now. Only the job that it names may write to it.
    CONSTRAINT bookmarks_summary CHECK ((summary IS NULL) = (summary_by IS NULL))
) STRICT;

CREATE INDEX IF NOT EXISTS bookmarks_newest ON bookmarks (person_id, id DESC);

-- Which bookmark a URL is until when (SPEC A7). A row of its own, so that two saves at once meet on it.
CREATE TABLE IF NOT EXISTS saved_urls (
    person_id   BLOB    NOT NULL,
    url         TEXT    NOT NULL,
    bookmark_id BLOB    NOT NULL,
    until       INTEGER NOT NULL,
    PRIMARY KEY (person_id, url)
) STRICT, WITHOUT ROWID;

-- Views are made anew at every start, so that they are always those of this release.
DROP VIEW IF EXISTS bookmark_now;
DROP VIEW IF EXISTS failed_jobs;

-- A bookmark with what the engine knows of its job (SPEC A12).
CREATE VIEW bookmark_now AS
SELECT b.id, b.person_id, b.url, b.title, b.summary, b.summary_by, b.source_hint, b.created_from, b.created_at, b.search, b.job,
       m.queue AS job_type, m.status, m.tries, m.tries_allowed,
       CASE WHEN m.status = 'failed' THEN m.next_attempt END AS retry_at,
       CASE WHEN m.status IN ('failed', 'dead') THEN m.last_error_text END AS error
FROM bookmarks b
LEFT JOIN ichido_message m ON m.id = b.job;

-- The dead letters of this app (SPEC A11), for people: ids and times are text here. A letter begins with the code of what was wrong.
CREATE VIEW failed_jobs AS
SELECT lower(substr(hex(m.id), 1, 8) || '-' || substr(hex(m.id), 9, 4) || '-' || substr(hex(m.id), 13, 4) || '-' ||
             substr(hex(m.id), 17, 4) || '-' || substr(hex(m.id), 21)) AS id,
       json_extract(CAST(m.request AS TEXT), '$.bookmark_id') AS bookmark_id,
       m.queue AS job_type,
       m.last_error_text AS error,
       CAST(m.request AS TEXT) AS payload,
       strftime('%Y-%m-%dT%H:%M:%fZ', l.since / 1000000.0, 'unixepoch') AS failed_at,
       coalesce(substr(m.last_error_text, 1, instr(m.last_error_text, ':') - 1), '')
           NOT IN ('page_not_found', 'page_refused', 'page_too_large', 'page_not_text', 'address_refused') AS can_retry
FROM ichido_letters l
JOIN ichido_message m ON m.id = l.message_id
WHERE l.state = 'dead' AND l.queue IN ('extraction', 'llm_processing');
