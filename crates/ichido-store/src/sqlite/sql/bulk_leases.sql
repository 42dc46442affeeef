-- Lists the bulk operations that move letters: those whose leases have not lapsed.
SELECT task, node FROM ichido_singleton_tasks
WHERE (task = 'dead_letters' OR task GLOB 'dead_letters:*') AND lease_until > ?1 AND lease_until <= ?1 + ?2
