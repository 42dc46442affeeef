-- Identifies the database of a connection: its file, with the full path.
SELECT file FROM pragma_database_list WHERE name = 'main'
