-- Paper 004, section 6, q3: aggregation with count.
SELECT c1, count(bt1.c2) FROM bt1 GROUP BY c1
