-- Lists the bulk operations that move letters: those whose leases have not lapsed.
SELECT duty, node FROM ichido_caretakers
WHERE (duty = 'letters' OR duty GLOB 'letters:*') AND lease_until > ?1 AND lease_until <= ?1 + ?2
