-- Paper 002, section V-A.2: a MIN view.
SELECT x, min(y) AS m
FROM r
GROUP BY x
