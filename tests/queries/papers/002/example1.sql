-- Paper 002, Examples 1 and 2: D(X; S), a sum per group.
SELECT x, sum(y) AS s
FROM r
GROUP BY x
