-- Returns when the longest-waiting open letter of a queue became one, with one step down the index from its far end.
SELECT min(since) AS oldest FROM ichido.dead_letters WHERE state = $1 AND closed = 'open' AND queue = $2
