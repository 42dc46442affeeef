INSERT INTO ichido_leases (fence, queue, node, claimed_at, lease_until, start_marks, suspect, guarantee, keeps_for, max_time_in_flight, message_ids)
VALUES (?1, ?2, ?3, ?4, ?4 + ?5, ?6, ?7, ?8, ?9, ?10, ?11)
