-- Returns how far retention has come. It is stored as a singleton task that no node holds: `lease_until` is the time that it
-- has reached.
SELECT lease_until AS reached FROM ichido.singleton_tasks WHERE task = 'retention'
