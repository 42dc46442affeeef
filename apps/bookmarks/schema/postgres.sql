-- The app's own tables, beside the engine's in the same database: a bookmark, the answer under its key and the message that has it
-- summarised commit together. Times are microseconds since 1970, as the engine has them; ids are UUIDs, the newest greatest.

CREATE TABLE IF NOT EXISTS people (
    id         uuid    NOT NULL PRIMARY KEY,
    name       text    NOT NULL UNIQUE,
    token_hash bytea   NOT NULL CHECK (octet_length(token_hash) = 32),
    created_at bigint  NOT NULL
);

CREATE TABLE IF NOT EXISTS sessions (
    id         uuid    NOT NULL PRIMARY KEY,
    person_id  uuid    NOT NULL REFERENCES people (id),
    hash       bytea   NOT NULL CHECK (octet_length(hash) = 32),
    expires_at bigint  NOT NULL
);

CREATE INDEX IF NOT EXISTS sessions_expiry ON sessions (expires_at);

CREATE TABLE IF NOT EXISTS bookmarks (
    id              uuid    NOT NULL PRIMARY KEY,
    person_id       uuid    NOT NULL REFERENCES people (id),
    url             text    NOT NULL, -- In canonical form.
    idempotency_key text    NOT NULL, -- Of the request that saved it.
    source_hint     text,
    created_from    text,
    created_at      bigint  NOT NULL,
    title           text,
    text            text,             -- What the page says, for who summarises it.
    summary         text,
    summary_by      text CHECK (summary_by IN ('model', 'extract')),
    search          text    NOT NULL, -- URL, title and summary in small letters.
    jobs            bigint  NOT NULL DEFAULT 0, -- How many times it was given to the background.
    job             uuid    NOT NULL, -- The message that stands for it now. Only the job that it names may write to it.
    CONSTRAINT bookmarks_summary CHECK ((summary IS NULL) = (summary_by IS NULL))
);

CREATE INDEX IF NOT EXISTS bookmarks_newest ON bookmarks (person_id, id DESC);

-- Which bookmark a URL is until when (SPEC A7). A row of its own, so that two saves at once meet on it.
CREATE TABLE IF NOT EXISTS saved_urls (
    person_id   uuid    NOT NULL,
    url         text    NOT NULL,
    bookmark_id uuid    NOT NULL,
    until       bigint  NOT NULL,
    PRIMARY KEY (person_id, url)
);

-- Views are made anew at every start, so that they are always those of this release.
DROP VIEW IF EXISTS bookmark_now;
DROP VIEW IF EXISTS failed_jobs;

-- A bookmark with what the engine knows of its job (SPEC A12).
CREATE VIEW bookmark_now AS
SELECT b.id, b.person_id, b.url, b.title, b.summary, b.summary_by, b.source_hint, b.created_from, b.created_at, b.search, b.job,
       m.queue AS job_type, m.status, m.tries::bigint AS tries, m.tries_allowed::bigint AS tries_allowed,
       CASE WHEN m.status = 'failed' THEN (extract(epoch FROM m.next_attempt) * 1000000)::bigint END AS retry_at,
       CASE WHEN m.status IN ('failed', 'dead') THEN m.last_error_text END AS error
FROM bookmarks b
LEFT JOIN ichido.message m ON m.id = b.job;

-- The dead letters of this app (SPEC A11). A letter begins with the code of what was wrong.
CREATE VIEW failed_jobs AS
SELECT m.id,
       convert_from(m.request, 'UTF8')::jsonb ->> 'bookmark_id' AS bookmark_id,
       m.queue AS job_type,
       m.last_error_text AS error,
       convert_from(m.request, 'UTF8') AS payload,
       l.since AS failed_at,
       coalesce(split_part(m.last_error_text, ':', 1), '')
           NOT IN ('page_not_found', 'page_refused', 'page_too_large', 'page_not_text', 'address_refused') AS can_retry
FROM ichido.letters l
JOIN ichido.message m ON m.id = l.message_id
WHERE l.state = 'dead' AND l.queue IN ('extraction', 'llm_processing');
