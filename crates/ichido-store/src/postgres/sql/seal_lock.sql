-- Only one transaction at a time makes seals or deletes what they cover. Reads continue, and no write of an entry waits.
LOCK TABLE ichido.seals IN SHARE ROW EXCLUSIVE MODE
