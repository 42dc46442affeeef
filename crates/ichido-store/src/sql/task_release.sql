-- A stopping node leaves its singleton tasks to the next one.
DELETE FROM ichido.singleton_tasks WHERE node = $1
