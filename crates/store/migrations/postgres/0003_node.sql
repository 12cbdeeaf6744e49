-- When a node last renewed its lease.
ALTER TABLE node ADD COLUMN renewed_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp();
