-- Paper 002, section V-B: the K-FK join view D(X; Y; Z).
SELECT rfk.x, rfk.y, s.z
FROM rfk
JOIN s ON rfk.y = s.y
