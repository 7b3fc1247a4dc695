-- Paper 004, section 6, q4 on the TPC-H workload: orders with their customers.
SELECT o_custkey, c_name FROM orders, customer WHERE o_custkey = c_custkey
