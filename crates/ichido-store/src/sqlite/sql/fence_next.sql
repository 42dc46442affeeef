-- Issues a fence in the caller's own transaction.
UPDATE ichido_fence SET last = last + 1 WHERE one = 1 RETURNING last
