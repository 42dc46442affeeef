-- Prevents settles and rescues under this claim until this transaction ends. Returns no row if the claim has ended.
SELECT fence FROM ichido.leases WHERE fence = $1 FOR UPDATE
