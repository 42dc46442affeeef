-- Returns what waits for a seal.
SELECT count(*) AS count, min(at) AS since FROM ichido.events WHERE position >= $1 AND position < $2
