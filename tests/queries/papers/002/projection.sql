-- Paper 002, section V-C: a projection that keeps the key.
SELECT k, y
FROM r
