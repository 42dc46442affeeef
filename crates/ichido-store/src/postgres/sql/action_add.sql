-- PostgreSQL assigns the fences itself; the last column is SQLite's.
INSERT INTO ichido.events (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, effect, excerpt, actor, about)
SELECT i.subject, nextval('ichido.fence'), 0, clock_timestamp() + $9 * interval '1 microsecond', i.from_state, i.to_state, i.kind, 0, 0,
       'none', i.excerpt, i.actor, i.about
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[])
         AS i (subject, from_state, to_state, kind, excerpt, actor, about, fence)
