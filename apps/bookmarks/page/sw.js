// Not here yet.
