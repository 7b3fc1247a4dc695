-- Paper 004, section 6, q2 on the TPC-H workload: o_totalprice with x = 10000.0.
SELECT o_custkey FROM orders WHERE o_totalprice < 10000.0
