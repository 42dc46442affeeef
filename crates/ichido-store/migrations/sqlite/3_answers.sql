-- Answers of models, kept until a person deletes them.

-- One row per question, created before it is first asked. A row without an answer shows whether a run is asking now, and how many
-- calls were started whose outcome is unknown: they may have been billed.
CREATE TABLE ichido_answers (
    id          BLOB    NOT NULL PRIMARY KEY,
    topic       TEXT    NOT NULL, -- Answers are deleted by topic.
    created_at  INTEGER NOT NULL,
    holder      BLOB,             -- The run with a call in flight.
    held_until  INTEGER,
    lost        INTEGER NOT NULL,
    answer      BLOB,
    answered_at INTEGER,
    CONSTRAINT answers_held CHECK ((holder IS NULL) = (held_until IS NULL)),
    CONSTRAINT answers_answered CHECK ((answer IS NULL) = (answered_at IS NULL) AND (answer IS NULL OR holder IS NULL))
) STRICT;

CREATE INDEX ichido_answers_topic ON ichido_answers (topic);
CREATE INDEX ichido_answers_holder ON ichido_answers (holder) WHERE holder IS NOT NULL;
