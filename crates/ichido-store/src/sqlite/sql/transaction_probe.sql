-- Fails within a transaction. If it succeeds, the transaction had ended and is begun again.
BEGIN
