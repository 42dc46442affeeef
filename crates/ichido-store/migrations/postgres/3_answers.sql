-- Answers of models, kept until a person deletes them.

-- One row per question, created before it is first asked. A row without an answer shows whether a run is asking now, and how many
-- calls were started whose outcome is unknown: they may have been billed.
CREATE TABLE ichido.answers (
    id          bytea            NOT NULL PRIMARY KEY,
    topic       text COLLATE "C" NOT NULL, -- Answers are deleted by topic.
    created_at  timestamptz      NOT NULL,
    holder      uuid,                      -- The run with a call in flight.
    held_until  timestamptz,
    lost        integer          NOT NULL,
    answer      bytea,
    answered_at timestamptz,
    CONSTRAINT answers_held CHECK ((holder IS NULL) = (held_until IS NULL)),
    CONSTRAINT answers_answered CHECK ((answer IS NULL) = (answered_at IS NULL) AND (answer IS NULL OR holder IS NULL))
);

CREATE INDEX answers_topic ON ichido.answers (topic);
CREATE INDEX answers_holder ON ichido.answers (holder) WHERE holder IS NOT NULL;
