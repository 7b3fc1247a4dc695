-- Papers 003 and 004, Figure 5, Sum A.
SELECT c1, sum(c2) AS c_sum
FROM a
GROUP BY c1
