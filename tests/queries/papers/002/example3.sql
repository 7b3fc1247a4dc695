-- Paper 002, Example 3: D(K; X; Y), a selection.
SELECT k, x, y
FROM r
WHERE y < 25
