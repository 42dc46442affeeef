-- Declares a node dead, unless it sent a heartbeat since it was found at $2, or somebody else was faster.
UPDATE ichido.nodes SET gone = true, deaths = deaths + 1 WHERE id = $1 AND seen_at = $2 AND NOT gone
