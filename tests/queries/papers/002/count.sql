-- Paper 002, section V-A.1: the COUNT view D(X; C).
SELECT x, count(y) AS c
FROM r
GROUP BY x
