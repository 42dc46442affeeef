INSERT INTO ichido_leases (fence, queue, node, claimed_at, lease_until, marks, suspect, guarantee, keeps_for, travels_for, message_ids)
VALUES (?1, ?2, ?3, ?4, ?4 + ?5, ?6, ?7, ?8, ?9, ?10, ?11)
