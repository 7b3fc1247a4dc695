-- Papers 003 and 004, Figure 5, Reverse Join A,B: the rows of both tables by join key, matched or not.
SELECT coalesce(rows_a.c1, rows_b.c1) AS jk, rows_a.c_a, rows_b.c_b
FROM (
    SELECT c1, list({'rk': rk, 'c2': c2} ORDER BY rk) AS c_a
    FROM a
    GROUP BY c1
) AS rows_a
FULL JOIN (
    SELECT c1, list({'rk': rk, 'c2': c2} ORDER BY rk) AS c_b
    FROM b
    GROUP BY c1
) AS rows_b ON rows_a.c1 = rows_b.c1
