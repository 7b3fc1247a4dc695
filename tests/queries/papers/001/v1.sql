-- Paper 001, section 5.1, view V1: highly aggregated, by nation and market segment.
SELECT
    n_name,
    c_mktsegment,
    count(*) AS totalcnt,
    sum(l_extendedprice) AS totalprice,
    sum(l_quantity) AS totalquantity
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey
    AND n_nationkey = c_nationkey
GROUP BY n_name, c_mktsegment
