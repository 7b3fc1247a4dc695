-- Nexmark (the events of the Beam and Flink suites) as three tables. A bid has no key of its own there,
-- so one is added. The side input of q13 is a table as well.

CREATE TABLE person (
    id BIGINT PRIMARY KEY,
    name VARCHAR,
    email_address VARCHAR,
    credit_card VARCHAR,
    city VARCHAR,
    state VARCHAR,
    date_time TIMESTAMP,
    extra VARCHAR
);

CREATE TABLE auction (
    id BIGINT PRIMARY KEY,
    item_name VARCHAR,
    description VARCHAR,
    initial_bid BIGINT,
    reserve BIGINT,
    date_time TIMESTAMP,
    expires TIMESTAMP,
    seller BIGINT,
    category BIGINT,
    extra VARCHAR
);

CREATE TABLE bid (
    id BIGINT PRIMARY KEY,
    auction BIGINT,
    bidder BIGINT,
    price BIGINT,
    channel VARCHAR,
    url VARCHAR,
    date_time TIMESTAMP,
    extra VARCHAR
);

CREATE TABLE side_input (
    key BIGINT PRIMARY KEY,
    value VARCHAR
);
