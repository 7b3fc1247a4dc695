-- Paper 004, Figure 6: a composite view in two zones.
SELECT SUM(c2) FROM bt1 WHERE c2 < 10 GROUP BY c1
