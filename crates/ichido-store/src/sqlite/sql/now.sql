-- The database's clock in microseconds, plus the store's skew. SQLite's clock has milliseconds, and its seconds are a float:
-- rounded to milliseconds first, so that no digit is lost.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + ?1 AS now
