-- Dead letters that a person has closed are counted as closed: they wait for nobody.
SELECT queue, state, count FROM ichido_counts WHERE count <> 0 AND state <> 'closed' ORDER BY queue, state
