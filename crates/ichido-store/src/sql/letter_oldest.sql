-- Since when the open letter of a queue that waits longest is one, by one step down the index from its far end.
SELECT min(since) AS oldest FROM ichido.letters WHERE state = $1 AND closed = 'open' AND queue = $2
