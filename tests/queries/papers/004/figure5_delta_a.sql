-- Papers 003 and 004, Figure 5, Delta A: every column of the base table, by its row key.
SELECT rk, c1, c2
FROM a
