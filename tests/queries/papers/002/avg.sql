-- Paper 002, section V-A.1: an AVG view.
SELECT x, avg(y) AS a
FROM r
GROUP BY x
