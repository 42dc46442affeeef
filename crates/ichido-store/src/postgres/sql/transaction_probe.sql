-- Whether this is the transaction that was begun (StoreDatabase::begin): its mark ends with it. Fails in one that has failed.
SELECT coalesce(current_setting('ichido.transaction', true) = 'open', false) AS is_open
