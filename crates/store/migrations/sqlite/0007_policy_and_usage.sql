-- What lists show of a session's policy and usage. Sessions from before have none here: `spent_input` stays NULL.
ALTER TABLE session ADD COLUMN policy TEXT;
ALTER TABLE session ADD COLUMN policy_chosen INTEGER;
ALTER TABLE session ADD COLUMN spent_input INTEGER;
ALTER TABLE session ADD COLUMN spent_output INTEGER;
ALTER TABLE session ADD COLUMN spent_cost INTEGER;
ALTER TABLE session ADD COLUMN last_input INTEGER;
ALTER TABLE session ADD COLUMN last_output INTEGER;
