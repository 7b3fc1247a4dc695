-- Paper 004, section 6, q3: aggregation with max.
SELECT c1, max(bt1.c2) FROM bt1 GROUP BY c1
