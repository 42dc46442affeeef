-- Failure groups: open dead letters of one queue with the same error.

-- NULL for a letter of an earlier release. Such a letter belongs to no group.
ALTER TABLE ichido.dead_letters ADD COLUMN group_id uuid;

CREATE INDEX dead_letters_group ON ichido.dead_letters (group_id, state, closed, since DESC, message_id DESC) WHERE group_id IS NOT NULL;

CREATE TABLE ichido.failure_groups (
    id          uuid             NOT NULL PRIMARY KEY, -- A hash of queue, code and template.
    queue       text COLLATE "C" NOT NULL,
    code        text,
    template    text             NOT NULL, -- The error's text without its values; bounded, never quoted text.
    count       bigint           NOT NULL, -- Open letters, dead or parked.
    first_seen  timestamptz      NOT NULL,
    last_seen   timestamptz      NOT NULL,
    state       text             NOT NULL,
    state_since timestamptz      NOT NULL,
    state_by    text,                      -- The last person who changed the state.
    urgency     smallint         NOT NULL, -- Follows from the state: groups that need a person are listed first.
    CONSTRAINT failure_groups_state CHECK (state IN ('open', 'acknowledged', 'resolved', 'came_back'))
);

CREATE INDEX failure_groups_urgent ON ichido.failure_groups (urgency DESC, last_seen DESC, id DESC) WHERE count > 0;
CREATE INDEX failure_groups_empty ON ichido.failure_groups (last_seen) WHERE count <= 0;

-- Changes of groups, inserted with the letters that cause them and folded by maintenance: a row per group that every failure
-- updates would be a hot lock.
CREATE TABLE ichido.failure_group_deltas (
    group_id uuid             NOT NULL,
    queue    text COLLATE "C" NOT NULL,
    code     text,
    template text             NOT NULL,
    delta    integer          NOT NULL,
    failed   boolean          NOT NULL, -- Whether a message failed; otherwise letters only left.
    at       timestamptz      NOT NULL
);
