-- All entries of a seal are forgotten: its list goes, its root and count stay.
UPDATE ichido.seals SET leaves = NULL, pruned = $2 WHERE number = $1
