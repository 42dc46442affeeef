SELECT state, destination FROM entry WHERE id = ?1
