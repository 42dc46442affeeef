-- When a worker last asked the receiver about a letter's unknown effect and did not learn it. NULL if it never did.
ALTER TABLE ichido_dead_letters ADD COLUMN asked_at INTEGER;
