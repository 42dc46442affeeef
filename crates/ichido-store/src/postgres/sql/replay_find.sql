SELECT about, count, first_at, last_at FROM ichido.replays WHERE about = ANY ($1)
