-- Who signed in to the dashboard. Only the hash of a session's cookie is stored.
CREATE TABLE ichido.dashboard_sessions (
    hash       bytea       NOT NULL PRIMARY KEY,
    token_id   uuid        NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT dashboard_sessions_hash CHECK (octet_length(hash) = 32)
);
CREATE INDEX dashboard_sessions_expiry ON ichido.dashboard_sessions (expires_at);
