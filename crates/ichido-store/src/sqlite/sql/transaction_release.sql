-- Removes the mark of `begin_marked`. Fails if the transaction has ended, even if its user has begun another.
RELEASE ichido_transaction
