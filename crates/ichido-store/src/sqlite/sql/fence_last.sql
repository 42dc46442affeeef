-- The last fence that was issued.
SELECT last AS fence FROM ichido_fence
