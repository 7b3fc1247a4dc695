"""The views that the papers' evaluations maintain.

The texts stand here by themselves, without anything imported, since processes of other systems read
them in environments that have nothing of ours.
"""

QUERIES = {
    "q1": "SELECT k, c1, c2 FROM bt1 WHERE c2 < 500",
    "q2": "SELECT c1, count(*) AS n, sum(c2) AS s FROM bt1 GROUP BY c1",
    "q3": "SELECT c1, count(*) AS n, sum(c3) AS s, avg(c3) AS a, min(c3) AS lo, max(c3) AS hi FROM bt1 GROUP BY c1",
    "q4": "SELECT bt1.k, bt1.c2, bt2.k AS l, bt2.c4 FROM bt1 JOIN bt2 ON bt1.c1 = bt2.c1",
}
"""Of the VMS paper: a selection, an aggregation that adds up, one with extremes, a join."""
