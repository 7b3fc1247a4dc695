-- Papers 003 and 004, Figure 5, Min A.
SELECT c1, min(c2) AS c_min
FROM a
GROUP BY c1
