-- Paper 002, section V-A.2: a MAX view.
SELECT x, max(y) AS m
FROM r
GROUP BY x
