-- Nexmark q11, user sessions: bids of each bidder, a session ending after ten seconds without one.
-- The SESSION window is written out: a bid more than ten seconds after the one before starts a session.
SELECT
    bidder,
    count(*) AS bid_count,
    min(date_time) AS starttime,
    max(date_time) + INTERVAL '10 seconds' AS endtime
FROM (
    SELECT
        bidder,
        date_time,
        sum(CASE WHEN previous IS NULL OR date_time > previous + INTERVAL '10 seconds' THEN 1 ELSE 0 END)
            OVER (PARTITION BY bidder ORDER BY date_time) AS session
    FROM (
        SELECT bidder, date_time, lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time) AS previous
        FROM bid
        WHERE date_time IS NOT NULL
    ) AS steps
) AS sessions
GROUP BY bidder, session
