-- Papers 003 and 004. a and b are the base tables of Figure 5 (row key rk); bt1 and bt2 are those of the
-- queries q1 to q4 in section 6 of 004 and of its Figure 6. bt1 is also the base table B of Example 1 there.

CREATE TABLE a (
    rk VARCHAR PRIMARY KEY,
    c1 VARCHAR,
    c2 INTEGER
);

CREATE TABLE b (
    rk VARCHAR PRIMARY KEY,
    c1 VARCHAR,
    c2 INTEGER
);

CREATE TABLE bt1 (
    k VARCHAR PRIMARY KEY,
    c1 VARCHAR,
    c2 INTEGER
);

CREATE TABLE bt2 (
    l VARCHAR PRIMARY KEY,
    d1 VARCHAR,
    d2 INTEGER
);
