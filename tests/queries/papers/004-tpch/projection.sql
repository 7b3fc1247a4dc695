-- Paper 004, section 6, q1 on the TPC-H workload.
SELECT o_custkey FROM orders
