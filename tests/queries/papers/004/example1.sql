-- Paper 004, Example 1 and Figure 3: V = γ(c1, sum(c2)).
SELECT c1, sum(c2) AS c_sum
FROM bt1
GROUP BY c1
