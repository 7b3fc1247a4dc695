-- Paper 004, section 6, q3 on the TPC-H workload: grouped by customer key.
SELECT
    o_custkey,
    sum(o_totalprice) AS total,
    min(o_totalprice) AS lowest,
    max(o_totalprice) AS highest,
    avg(o_totalprice) AS average,
    count(o_totalprice) AS number
FROM orders
GROUP BY o_custkey
