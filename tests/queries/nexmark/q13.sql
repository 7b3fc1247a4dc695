-- Nexmark q13, bounded side input join: each bid with the side input's value for its auction.
-- Tables have no processing time, so the join follows the side input's present rows.
SELECT b.id, b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid AS b
INNER JOIN side_input AS s ON b.auction % 10000 = s.key
