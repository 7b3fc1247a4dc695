-- Paper 004, section 6, q1: projection.
SELECT c1 FROM bt1
