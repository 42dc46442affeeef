-- Lists actions of people, newest first. The entries about sealed key records are many and say nothing to people.
SELECT message_id, fence, at, from_state, to_state, kind, excerpt, actor, about
FROM ichido.events WHERE about IS NOT NULL AND kind <> 'keys_sealed' AND fence < $1 ORDER BY fence DESC LIMIT $2
