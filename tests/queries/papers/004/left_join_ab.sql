-- Paper 003, section 4.2, and paper 004, section 5.2: the LEFT join of the same tables, from the same REVERSE-JOIN.
SELECT a.rk AS rk_a, b.rk AS rk_b, a.c2 AS c2_a, b.c2 AS c2_b
FROM a
LEFT JOIN b ON a.c1 = b.c1
