-- Paper 004, section 6, q4: join.
SELECT bt1.c1, bt2.d2 FROM bt1, bt2 WHERE bt1.c1 = bt2.d1
