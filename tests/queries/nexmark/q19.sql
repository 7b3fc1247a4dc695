-- Nexmark q19, auction TOP-10 price: the ten highest bids of each auction.
SELECT *
FROM (
    SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, id) AS rank_number
    FROM bid
) AS ranked
WHERE rank_number <= 10
