-- Nobody settles or rescues what is under this claim until we are done. Nothing comes back when it is over.
SELECT fence FROM ichido.leases WHERE fence = $1 FOR UPDATE
