-- Paper 000, Figure 1: the base table of a help desk.
CREATE TABLE ticket (
    id INTEGER PRIMARY KEY,
    status VARCHAR,
    assigned_to VARCHAR,
    description VARCHAR
);
