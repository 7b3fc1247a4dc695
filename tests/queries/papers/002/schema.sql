-- Paper 002. r is the base table R(K; X; Y) of Examples 1 to 3 and of section V-A; r2 is a second one of its
-- shape for the set operations of section V-C. rfk and s are R(X; Y) and S(Y; Z) of the key-foreign-key join
-- in section V-B. friends is the table of section III.

CREATE TABLE r (
    k VARCHAR PRIMARY KEY,
    x VARCHAR,
    y INTEGER
);

CREATE TABLE r2 (
    k VARCHAR PRIMARY KEY,
    x VARCHAR,
    y INTEGER
);

CREATE TABLE s (
    y VARCHAR PRIMARY KEY,
    z VARCHAR
);

CREATE TABLE rfk (
    x VARCHAR PRIMARY KEY,
    y VARCHAR
);

CREATE TABLE friends (
    uid VARCHAR,
    fid VARCHAR,
    PRIMARY KEY (uid, fid)
);
