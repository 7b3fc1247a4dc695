-- Paper 000, section III: "easy to incorporate relational selection"; open tickets only.
SELECT assigned_to, id AS ticket
FROM ticket
WHERE assigned_to IS NOT NULL AND status = 'open'
