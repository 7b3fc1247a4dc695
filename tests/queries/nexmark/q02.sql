-- Nexmark q2, selection: bids on some auctions.
SELECT id, auction, price
FROM bid
WHERE auction % 123 = 0
