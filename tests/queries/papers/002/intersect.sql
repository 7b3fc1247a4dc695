-- Paper 002, section V-C: a set operation view, intersection.
SELECT x FROM r
INTERSECT
SELECT x FROM r2
