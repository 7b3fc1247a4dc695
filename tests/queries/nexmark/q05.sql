-- Nexmark q5, hot items: the auctions with most bids in the last ten seconds, every two seconds.
SELECT auction_bids.auction, auction_bids.num, auction_bids.window_start, auction_bids.window_end
FROM (
    SELECT auction, count(*) AS num, window_start, window_end
    FROM HOP(bid, date_time, INTERVAL '2 seconds', INTERVAL '10 seconds')
    GROUP BY auction, window_start, window_end
) AS auction_bids
INNER JOIN (
    SELECT max(count_bids.num) AS maxn, count_bids.window_start, count_bids.window_end
    FROM (
        SELECT count(*) AS num, window_start, window_end
        FROM HOP(bid, date_time, INTERVAL '2 seconds', INTERVAL '10 seconds')
        GROUP BY auction, window_start, window_end
    ) AS count_bids
    GROUP BY count_bids.window_start, count_bids.window_end
) AS max_bids
    ON auction_bids.window_start = max_bids.window_start
    AND auction_bids.window_end = max_bids.window_end
    AND auction_bids.num >= max_bids.maxn
