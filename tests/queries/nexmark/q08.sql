-- Nexmark q8, monitor new users: who opened an auction within the ten seconds in which they registered.
SELECT p.id, p.name, p.window_start
FROM (
    SELECT id, name, window_start, window_end
    FROM TUMBLE(person, date_time, INTERVAL '10 seconds')
    GROUP BY id, name, window_start, window_end
) AS p
INNER JOIN (
    SELECT seller, window_start, window_end
    FROM TUMBLE(auction, date_time, INTERVAL '10 seconds')
    GROUP BY seller, window_start, window_end
) AS a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end
