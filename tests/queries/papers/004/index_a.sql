-- Paper 003, section 4.2, INDEX: the row keys of each value of a column.
SELECT c1, rk
FROM a
ORDER BY c1, rk
