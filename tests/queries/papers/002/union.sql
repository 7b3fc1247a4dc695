-- Paper 002, section V-C: a set operation view, union.
SELECT x, y FROM r
UNION
SELECT x, y FROM r2
