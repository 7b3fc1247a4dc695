-- Paper 002, section III: the base table Friends(UID, FID), all of whose columns are its key, read as it stands.
SELECT uid, fid
FROM friends
