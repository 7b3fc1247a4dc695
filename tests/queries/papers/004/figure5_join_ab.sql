-- Papers 003 and 004, Figure 5, Join A,B: the row keys of both sides make the row key.
SELECT a.rk AS rk_a, b.rk AS rk_b, a.c1, a.c2 AS c2_a, b.c2 AS c2_b
FROM a
JOIN b ON a.c1 = b.c1
