-- Paper 002, section V-C: a projection without the key counts the base rows behind each view row.
SELECT DISTINCT x
FROM r
