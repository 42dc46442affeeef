-- Returns the lists that may have records of a span of expiry.
SELECT records FROM ichido.sealed_keys WHERE until_at >= $1 AND since_at <= $2
