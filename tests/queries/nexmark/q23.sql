-- Nexmark q23, expand bid with person and auction: bids of persons who also sell, with what they sell.
SELECT
    b.id AS bid_id, b.bidder, b.price, b.channel, b.url, b.extra AS bid_extra,
    p.name, p.email_address, p.credit_card, p.city, p.state, p.extra AS person_extra,
    a.id AS auction_id, a.item_name, a.description, a.initial_bid, a.reserve, a.date_time AS auction_date_time,
    a.expires, a.category, a.extra AS auction_extra
FROM bid AS b
INNER JOIN person AS p ON p.id = b.bidder
INNER JOIN auction AS a ON a.seller = b.bidder
