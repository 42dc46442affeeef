UPDATE ichido.nodes SET locked = true WHERE id = $1
