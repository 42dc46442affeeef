-- The app's own tables, in the same database as the engine's: a bookmark, the response under its key and the message for its first job
-- commit together. Times are microseconds since 1970, as in the engine's tables. Ids are time-ordered UUIDs.

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
    idempotency_key text    NOT NULL, -- The key of the request that saved it.
    source_hint     text,
    created_from    text,
    created_at      bigint  NOT NULL,
    title           text,             -- The page's, or the client's until the page is read.
    edited_title    text,             -- The person's own. It is shown instead.
    tags            text    NOT NULL DEFAULT '[]', -- JSON.
    icon            uuid,
    text            text,             -- The text of the page, to summarise and to search.
    summary         text,
    summary_by      text CHECK (summary_by IN ('model', 'extract')),
    jobs            bigint  NOT NULL DEFAULT 0, -- The number of retries, part of the next job's key.
    job             uuid    NOT NULL, -- The message of its current job, the only one that may write to it.
    CONSTRAINT bookmarks_summary CHECK ((summary IS NULL) = (summary_by IS NULL))
);

CREATE INDEX IF NOT EXISTS bookmarks_newest ON bookmarks (person_id, id DESC);
-- A person's newest jobs, which decide whose turn it is.
CREATE INDEX IF NOT EXISTS bookmarks_newest_job ON bookmarks (person_id, job DESC);
-- The bookmark of a failed job.
CREATE INDEX IF NOT EXISTS bookmarks_job ON bookmarks (job);

-- The bookmark of a URL, which a second save returns. A separate row, so two concurrent saves meet on it.
CREATE TABLE IF NOT EXISTS saved_urls (
    person_id   uuid    NOT NULL,
    url         text    NOT NULL,
    bookmark_id uuid    NOT NULL,
    PRIMARY KEY (person_id, url)
);

-- The icon of a host, fetched once per person; without media if the host has none. Nothing is shared between people, so nobody learns
-- which hosts another person has saved.
CREATE TABLE IF NOT EXISTS icons (
    id         uuid    NOT NULL PRIMARY KEY,
    person_id  uuid    NOT NULL REFERENCES people (id),
    host       text    NOT NULL, -- With its scheme and port.
    fetched_at bigint  NOT NULL,
    media      text,
    bytes      bytea,
    UNIQUE (person_id, host)
);

-- The words of each bookmark, made by src/search/tokens.rs. The person's id is one of them, so a search reads one person's rows.
CREATE TABLE IF NOT EXISTS bookmark_words (
    bookmark_id uuid     NOT NULL PRIMARY KEY REFERENCES bookmarks (id) ON DELETE CASCADE,
    person_id   uuid     NOT NULL,
    words       tsvector NOT NULL, -- Title A, tags B, URL C, summary D.
    text_words  tsvector NOT NULL  -- A fifth field, and there are four labels.
);

-- All words of a bookmark. The cost keeps the planner from computing them for each row instead of reading the index.
CREATE OR REPLACE FUNCTION bookmark_all_words(words tsvector, text_words tsvector) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 10000 AS $$ BEGIN RETURN words || text_words; END $$;

-- Without the list of pending entries, which each search would read to its end.
CREATE INDEX IF NOT EXISTS bookmark_words_search ON bookmark_words USING gin (bookmark_all_words(words, text_words)) WITH (fastupdate = off);

-- Views are recreated at every start, so they always match this release.
DROP VIEW IF EXISTS bookmark_now;
DROP VIEW IF EXISTS failed_jobs;

-- A bookmark with the engine's data about its job.
CREATE VIEW bookmark_now AS
SELECT b.id, b.person_id, b.url, coalesce(b.edited_title, b.title) AS title, b.title AS page_title, b.tags, b.icon, b.summary, b.summary_by, b.source_hint,
       b.created_from, b.created_at, b.job,
       m.queue AS job_type, m.status, m.attempts::bigint AS attempts, m.max_attempts::bigint AS max_attempts,
       CASE WHEN m.status = 'failed' THEN (extract(epoch FROM m.next_attempt) * 1000000)::bigint END AS retry_at,
       CASE WHEN m.status IN ('failed', 'dead') THEN m.last_error_text END AS error
FROM bookmarks b
LEFT JOIN ichido.message m ON m.id = b.job;

-- The open failures of this app: the dead letters of jobs that nobody has retried, replaced or discarded. The message begins with
-- the error's code, and the payload has the number of the last attempt.
CREATE VIEW failed_jobs AS
SELECT m.id,
       b.id AS bookmark_id,
       m.queue AS job_type,
       m.last_error_text AS error_message,
       jsonb_set(convert_from(m.request, 'UTF8')::jsonb, '{attempt}', to_jsonb(l.attempts)) AS payload,
       l.since AS failed_at,
       coalesce(split_part(m.last_error_text, ':', 1), '')
           NOT IN ('page_not_found', 'page_refused', 'page_not_text', 'address_refused') AS retryable
FROM bookmarks b
JOIN ichido.dead_letters l ON l.message_id = b.job AND l.state = 'dead' AND l.closed = 'open'
JOIN ichido.message m ON m.id = l.message_id;
