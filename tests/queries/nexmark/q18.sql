-- Nexmark q18, find last bid: of each bidder on each auction.
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
    SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, id) AS rank_number
    FROM bid
) AS ranked
WHERE rank_number <= 1
