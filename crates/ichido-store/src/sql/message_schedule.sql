-- Returns the priority and the time that a message was enqueued with.
SELECT priority, due FROM ichido.messages WHERE id = $1
