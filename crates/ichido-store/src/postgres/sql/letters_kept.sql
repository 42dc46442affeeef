-- Lists the bulk operations that move letters: those whose leases have not lapsed.
SELECT duty, node FROM ichido.caretakers
WHERE (duty = 'letters' OR starts_with(duty, 'letters:')) AND lease_until > clock_timestamp() + $1 * interval '1 microsecond'
  AND lease_until <= clock_timestamp() + $1 * interval '1 microsecond' + $2 * interval '1 microsecond'
