-- Paper 001, section 5.1, view V2: orders whose customer and supplier come from different nations.
-- The paper's column list ends in dots; the keys of the joined rows stand there, so that rows differ.
SELECT s_name, c_name, c_mktsegment, ps_comment, l_orderkey, l_linenumber
FROM customer, orders, lineitem, supplier, partsupp
WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey
    AND l_suppkey = ps_suppkey AND l_partkey = ps_partkey
    AND ps_suppkey = s_suppkey AND s_nationkey <> c_nationkey
