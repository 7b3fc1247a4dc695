-- Papers 003 and 004, Figure 5, Pre-Agg A: the rows of each aggregation key.
SELECT c1, list({'rk': rk, 'c2': c2} ORDER BY rk) AS c_a
FROM a
GROUP BY c1
