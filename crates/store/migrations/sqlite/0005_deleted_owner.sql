-- Whose a deleted session was: its id stays refused to that principal, and looks unknown to every other.
ALTER TABLE session ADD COLUMN deleted_owner TEXT;
