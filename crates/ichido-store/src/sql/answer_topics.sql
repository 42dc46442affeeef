-- Counts the questions of each topic, for a person who is about to delete some.
SELECT topic, count(*) AS questions, count(answered_at) AS answers FROM ichido.answers GROUP BY topic ORDER BY topic LIMIT $1
