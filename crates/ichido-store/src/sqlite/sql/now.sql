-- Returns the database's clock in microseconds, plus the store's skew. SQLite's clock has milliseconds and returns seconds as a
-- float: rounding to milliseconds first loses no digit.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + ?1 AS now
