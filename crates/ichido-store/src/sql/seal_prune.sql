-- All entries of a seal were deleted: its list is deleted, and its root and count stay.
UPDATE ichido.seals SET leaves = NULL, pruned = $2 WHERE number = $1
