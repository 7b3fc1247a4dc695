-- Paper 004, section 6, q3: aggregation with avg.
SELECT c1, avg(bt1.c2) FROM bt1 GROUP BY c1
