UPDATE ichido.nodes SET gone = true WHERE id = $1
