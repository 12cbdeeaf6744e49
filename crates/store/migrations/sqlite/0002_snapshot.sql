-- Views at a place: a cache, may be emptied at any time.
CREATE TABLE snapshot (
    session BLOB NOT NULL,
    seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
