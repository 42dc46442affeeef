-- Who signed in to the dashboard. Only the hash of a session's cookie is stored.
CREATE TABLE ichido_dashboard_sessions (
    hash       BLOB    NOT NULL PRIMARY KEY,
    token_id   BLOB    NOT NULL,
    expires_at INTEGER NOT NULL,
    CONSTRAINT dashboard_sessions_hash CHECK (length(hash) = 32)
) STRICT, WITHOUT ROWID;
CREATE INDEX ichido_dashboard_sessions_expiry ON ichido_dashboard_sessions (expires_at);
