-- One row. `incarnation` names the life of the log, `boot` the boot of the machine that last wrote to it.
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    incarnation INTEGER NOT NULL,
    boot TEXT NOT NULL,
    clean INTEGER NOT NULL,
    probe INTEGER NOT NULL
);
INSERT INTO meta VALUES (1, 1, '', 1, 0);

-- A session and its card. All but id, epoch, deleted_at and purged are folds of its entries.
-- A deleted one keeps its id and loses its owner, which takes it out of every list.
CREATE TABLE session (
    id BLOB PRIMARY KEY NOT NULL,
    epoch INTEGER NOT NULL,
    owner TEXT,
    workspace TEXT NOT NULL,
    agent TEXT NOT NULL,
    parent BLOB,
    title TEXT NOT NULL DEFAULT '',
    search TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0,
    deleted_at INTEGER,
    purged INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX session_by_time ON session (owner, archived, updated_at, id, state, search);
CREATE INDEX session_by_place ON session (owner, archived, workspace, updated_at, id, state, search);
CREATE INDEX session_to_purge ON session (id) WHERE deleted_at IS NOT NULL AND purged = 0;

-- The log. A row holds the entries `first` to `last`: one fact (0), deltas with their text (1),
-- deltas whose text is in their whole message (2), or one whole message (3).
CREATE TABLE entry (
    session BLOB NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, first)
) WITHOUT ROWID;

-- Folds of the entries. Copies of a session share ids, so the session is part of the key.
CREATE TABLE run (
    id BLOB NOT NULL,
    session BLOB NOT NULL,
    first INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER,
    ended_at INTEGER,
    outcome TEXT,
    compacted INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (id, session)
) WITHOUT ROWID;
CREATE INDEX run_open ON run (id, session) WHERE ended IS NULL;
CREATE INDEX run_active ON run (session) WHERE ended IS NULL AND started IS NOT NULL;
CREATE INDEX run_to_compact ON run (ended_at) WHERE compacted = 0 AND ended IS NOT NULL;
CREATE INDEX run_by_session ON run (session, first);

CREATE TABLE question (
    id BLOB NOT NULL,
    session BLOB NOT NULL,
    run BLOB,
    asked INTEGER NOT NULL,
    answered INTEGER,
    PRIMARY KEY (id, session)
) WITHOUT ROWID;
CREATE INDEX question_open ON question (session, run) WHERE answered IS NULL;
CREATE INDEX question_by_session ON question (session);

-- Names that clients chose.
CREATE TABLE alias (
    principal TEXT NOT NULL,
    door TEXT NOT NULL,
    namespace TEXT NOT NULL,
    text TEXT NOT NULL,
    session BLOB NOT NULL,
    PRIMARY KEY (principal, door, namespace, text)
) WITHOUT ROWID;
CREATE INDEX alias_by_session ON alias (session);

-- Logs of no session.
CREATE TABLE scope (
    name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    fact TEXT NOT NULL,
    PRIMARY KEY (name, seq)
) WITHOUT ROWID;
