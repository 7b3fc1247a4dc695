-- Paper 004, section 6, q3: aggregation with min.
SELECT c1, min(bt1.c2) FROM bt1 GROUP BY c1
