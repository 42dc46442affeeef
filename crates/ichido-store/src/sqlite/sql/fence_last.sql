-- Returns the last issued fence.
SELECT last AS fence FROM ichido_fence
