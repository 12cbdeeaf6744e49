-- Questions that a live child asks: it dies with the server, so their runs do not wait for people alone.
ALTER TABLE question ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
