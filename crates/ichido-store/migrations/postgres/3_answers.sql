-- What models answered, kept until a person has it forgotten (SPEC B7).

-- One row a question, from before it is first asked. A row without an answer says whether somebody is asking now, and how many calls
-- were begun of which nobody knows what came: they may have been billed.
CREATE TABLE ichido.answers (
    id          bytea            NOT NULL PRIMARY KEY,
    topic       text COLLATE "C" NOT NULL, -- By which they are forgotten.
    created_at  timestamptz      NOT NULL,
    holder      uuid,                      -- The run that has a call under way.
    held_until  timestamptz,
    lost        integer          NOT NULL,
    answer      bytea,
    answered_at timestamptz,
    CONSTRAINT answers_held CHECK ((holder IS NULL) = (held_until IS NULL)),
    CONSTRAINT answers_answered CHECK ((answer IS NULL) = (answered_at IS NULL) AND (answer IS NULL OR holder IS NULL))
);

CREATE INDEX answers_topic ON ichido.answers (topic);
CREATE INDEX answers_holder ON ichido.answers (holder) WHERE holder IS NOT NULL;
