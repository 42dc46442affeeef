SELECT requested_at, actor, reason FROM ichido.cancellations WHERE message_id = $1
