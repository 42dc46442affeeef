-- Failure groups: open dead letters of one queue with the same error.

-- NULL for a letter of an earlier release. Such a letter belongs to no group.
ALTER TABLE ichido_dead_letters ADD COLUMN group_id BLOB;

CREATE INDEX ichido_dead_letters_group ON ichido_dead_letters (group_id, state, closed, since DESC, message_id DESC) WHERE group_id IS NOT NULL;

CREATE TABLE ichido_failure_groups (
    id          BLOB    NOT NULL PRIMARY KEY, -- A hash of queue, code and template.
    queue       TEXT    NOT NULL,
    code        TEXT,
    template    TEXT    NOT NULL, -- The error's text without its values; bounded, never quoted text.
    count       INTEGER NOT NULL, -- Open letters, dead or parked.
    first_seen  INTEGER NOT NULL,
    last_seen   INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    state_since INTEGER NOT NULL,
    state_by    TEXT,             -- The last person who changed the state.
    urgency     INTEGER NOT NULL, -- Follows from the state: groups that need a person are listed first.
    CONSTRAINT failure_groups_state CHECK (state IN ('open', 'acknowledged', 'resolved', 'came_back'))
) STRICT;

CREATE INDEX ichido_failure_groups_urgent ON ichido_failure_groups (urgency DESC, last_seen DESC, id DESC) WHERE count > 0;
CREATE INDEX ichido_failure_groups_empty ON ichido_failure_groups (last_seen) WHERE count <= 0;

-- Changes of groups, inserted with the letters that cause them and folded by maintenance, as on PostgreSQL.
CREATE TABLE ichido_failure_group_deltas (
    group_id BLOB    NOT NULL,
    queue    TEXT    NOT NULL,
    code     TEXT,
    template TEXT    NOT NULL,
    delta    INTEGER NOT NULL,
    failed   INTEGER NOT NULL, -- Whether a message failed; otherwise letters only left.
    at       INTEGER NOT NULL
) STRICT;
