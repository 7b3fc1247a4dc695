-- Paper 000, section IV: description as a further view-materialized column saves the read of the base table.
SELECT assigned_to, id AS ticket, status, description
FROM ticket
WHERE assigned_to IS NOT NULL
