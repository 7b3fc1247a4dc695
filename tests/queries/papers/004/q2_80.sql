-- Paper 004, section 6, q2: selection of 80 % of the rows, whose c2 lies between 0 and 100.
SELECT c1 FROM bt1 WHERE c2 < 80
