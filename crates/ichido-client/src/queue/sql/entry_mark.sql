-- Runs before the first byte leaves. The time of the first send is kept.
UPDATE entry SET state = 'sending', sends = sends + 1, sends_all = sends_all + 1,
    first_sent_us = coalesce(first_sent_us, ?2),
    first_sent_passed_us = coalesce(first_sent_passed_us, ?3),
    first_sent_set_backs = coalesce(first_sent_set_backs, ?4),
    cause = 'auto', is_released = 0
WHERE id = ?1 AND state = 'waiting'
