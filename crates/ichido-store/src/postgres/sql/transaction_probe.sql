-- Fails with "no active transaction" if the transaction has ended.
SAVEPOINT ichido_probe
