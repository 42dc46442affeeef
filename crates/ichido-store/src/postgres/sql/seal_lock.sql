-- One at a time makes seals or forgets what they cover; everybody may read them, and no write of an entry waits.
LOCK TABLE ichido.seals IN SHARE ROW EXCLUSIVE MODE
