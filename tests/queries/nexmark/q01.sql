-- Nexmark q1, currency conversion: every price from dollars to euros.
SELECT id, auction, bidder, 0.908 * price AS price, date_time, extra
FROM bid
