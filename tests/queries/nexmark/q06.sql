-- Nexmark q6, average selling price by seller: over a seller's auctions in the order of their winning bids,
-- each with the ten before it (the suite's frame).
SELECT
    winning.id,
    winning.seller,
    avg(winning.price) OVER (
        PARTITION BY winning.seller
        ORDER BY winning.date_time, winning.id
        ROWS BETWEEN 10 PRECEDING AND CURRENT ROW
    ) AS average
FROM (
    SELECT
        a.id,
        a.seller,
        b.price,
        b.date_time,
        row_number() OVER (PARTITION BY a.id, a.seller ORDER BY b.price DESC, b.date_time, b.id) AS rownum
    FROM auction AS a, bid AS b
    WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
) AS winning
WHERE winning.rownum <= 1
