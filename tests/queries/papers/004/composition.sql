-- Paper 003, section 4: an aggregation, a selection and a join composed into one view.
SELECT a.c1, count(*) AS pairs, sum(b.c2) AS c_sum
FROM a
JOIN b ON a.c1 = b.c1
WHERE a.c2 < 50
GROUP BY a.c1
