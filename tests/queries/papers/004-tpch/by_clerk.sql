-- Paper 004, section 6, q3 on the TPC-H workload: grouped by clerk.
SELECT
    o_clerk,
    sum(o_totalprice) AS total,
    min(o_totalprice) AS lowest,
    max(o_totalprice) AS highest,
    avg(o_totalprice) AS average,
    count(o_totalprice) AS number
FROM orders
GROUP BY o_clerk
