-- Nexmark q10, log to file system: the columns its files are partitioned by; writing files is not a view's business.
SELECT
    id, auction, bidder, price, date_time, extra,
    strftime(date_time, '%Y-%m-%d') AS day,
    strftime(date_time, '%H:%M') AS minute
FROM bid
