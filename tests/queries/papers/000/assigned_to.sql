-- Paper 000, Figure 1 and Definition 1: the view ASSIGNEDTO with view key assigned_to and the
-- view-materialized column status; a ticket whose view key is null has no row.
SELECT assigned_to, id AS ticket, status
FROM ticket
WHERE assigned_to IS NOT NULL
