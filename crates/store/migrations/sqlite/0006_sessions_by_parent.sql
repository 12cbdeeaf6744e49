-- Sessions of sub-agents, which are deleted with the one that began them.
CREATE INDEX session_by_parent ON session (parent) WHERE parent IS NOT NULL;
