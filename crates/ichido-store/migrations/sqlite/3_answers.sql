-- What models answered, kept until a person has it forgotten (SPEC B7).

-- One row a question, from before it is first asked. A row without an answer says whether somebody is asking now, and how many calls
-- were begun of which nobody knows what came: they may have been billed.
CREATE TABLE ichido_answers (
    id          BLOB    NOT NULL PRIMARY KEY,
    topic       TEXT    NOT NULL, -- By which they are forgotten.
    created_at  INTEGER NOT NULL,
    holder      BLOB,             -- The run that has a call under way.
    held_until  INTEGER,
    lost        INTEGER NOT NULL,
    answer      BLOB,
    answered_at INTEGER,
    CONSTRAINT answers_held CHECK ((holder IS NULL) = (held_until IS NULL)),
    CONSTRAINT answers_answered CHECK ((answer IS NULL) = (answered_at IS NULL) AND (answer IS NULL OR holder IS NULL))
) STRICT;

CREATE INDEX ichido_answers_topic ON ichido_answers (topic);
CREATE INDEX ichido_answers_holder ON ichido_answers (holder) WHERE holder IS NOT NULL;
