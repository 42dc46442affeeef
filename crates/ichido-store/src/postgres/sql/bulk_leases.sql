-- Lists the bulk operations that move letters: those whose leases have not lapsed.
SELECT task, node FROM ichido.singleton_tasks
WHERE (task = 'dead_letters' OR starts_with(task, 'dead_letters:')) AND lease_until > clock_timestamp() + $1 * interval '1 microsecond'
  AND lease_until <= clock_timestamp() + $1 * interval '1 microsecond' + $2 * interval '1 microsecond'
