-- Nexmark q0, pass through: the cost of moving a bid.
SELECT id, auction, bidder, price, date_time, extra
FROM bid
