SELECT last_us, passed_us, set_backs FROM watch WHERE one = 1
