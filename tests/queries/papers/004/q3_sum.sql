-- Paper 004, section 6, q3: aggregation with sum.
SELECT c1, sum(bt1.c2) FROM bt1 GROUP BY c1
