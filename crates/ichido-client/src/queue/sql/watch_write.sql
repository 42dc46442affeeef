INSERT INTO watch (one, last_us, passed_us, set_backs) VALUES (1, ?1, ?2, ?3)
ON CONFLICT (one) DO UPDATE SET last_us = excluded.last_us, passed_us = excluded.passed_us, set_backs = excluded.set_backs
