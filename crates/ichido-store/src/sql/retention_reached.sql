-- How far retention has come. It is kept among the duties, as one that no node has: `lease_until` is the moment that it has reached.
SELECT lease_until AS reached FROM ichido.caretakers WHERE duty = 'retention'
