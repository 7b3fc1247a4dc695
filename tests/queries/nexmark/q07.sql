-- Nexmark q7, highest bid: of every ten seconds.
SELECT b.id, b.auction, b.price, b.bidder, b.date_time, b.extra
FROM bid AS b
INNER JOIN (
    SELECT max(price) AS maxprice, window_start, window_end
    FROM TUMBLE(bid, date_time, INTERVAL '10 seconds')
    GROUP BY window_start, window_end
) AS b1 ON b.price = b1.maxprice
WHERE b.date_time >= b1.window_start AND b.date_time < b1.window_end
