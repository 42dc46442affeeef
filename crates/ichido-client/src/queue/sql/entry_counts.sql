SELECT destination, state, count(*) AS entries FROM entry GROUP BY destination, state ORDER BY destination, state
