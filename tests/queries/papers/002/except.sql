-- Paper 002, section V-C: a set operation view, difference.
SELECT x, y FROM r
EXCEPT
SELECT x, y FROM r2
