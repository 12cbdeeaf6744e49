-- Runs by when their state changed last, for lists that begin with the newest.
CREATE INDEX run_by_time ON run (COALESCE(ended_at, began_at), id);
