-- A node that stops leaves the word to those that serve the queue.
UPDATE ichido.queue_facts SET ended = true WHERE node = $1
