-- One row. `incarnation` names the life of the log, `identity` the database, its server and its timeline, as they were seen
-- when a server last connected: another one means that this is a copy, whose end may be missing.
CREATE TABLE meta (
    id SMALLINT PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    identity TEXT NOT NULL,
    probe BIGINT NOT NULL
);
INSERT INTO meta VALUES (1, 0, 1, '', 0);

-- A session and its summary. Texts that people choose hold no NUL here, see `text.rs`; they are compared by their bytes.
-- A deleted one keeps its id and loses its owner, which takes it out of every list.
--
-- Every append moves `head`, which is in no index, in a page with room: PostgreSQL then touches no index.
CREATE TABLE session (
    id UUID PRIMARY KEY,
    epoch BIGINT NOT NULL,
    head BIGINT NOT NULL,
    owner TEXT COLLATE "C",
    workspace TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    parent UUID,
    title TEXT COLLATE "C" NOT NULL DEFAULT '',
    search TEXT COLLATE "C" NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    state SMALLINT NOT NULL DEFAULT 0,
    archived BOOLEAN NOT NULL DEFAULT FALSE,
    messages BIGINT NOT NULL DEFAULT 0,
    policy TEXT,
    policy_chosen BOOLEAN,
    spent_input BIGINT,
    spent_output BIGINT,
    spent_cost BIGINT,
    last_input BIGINT,
    last_output BIGINT,
    deleted_at BIGINT,
    deleted_owner TEXT COLLATE "C",
    purged BOOLEAN NOT NULL DEFAULT FALSE,
    -- Which node owns it, whether it left something to do, how many commands wait, and the label of the only nodes
    -- that may own it.
    node UUID,
    has_work BOOLEAN NOT NULL DEFAULT FALSE,
    commands BIGINT NOT NULL DEFAULT 0,
    pinned_to TEXT COLLATE "C"
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX session_by_time ON session (owner, archived, updated_at DESC, id DESC);
-- By the hash of a folder, since an index takes no text of more than 2,700 bytes.
CREATE INDEX session_by_place ON session (owner, archived, hashtextextended(workspace, 0), updated_at DESC, id DESC);
CREATE INDEX session_by_parent ON session (parent) WHERE parent IS NOT NULL;
CREATE INDEX session_to_purge ON session (id) WHERE deleted_at IS NOT NULL AND NOT purged;
CREATE INDEX session_with_work ON session (id) WHERE has_work OR commands > 0;
CREATE INDEX session_by_node ON session (node) WHERE node IS NOT NULL;

-- Processes that serve these sessions. A restarted one is another node. Leases are by this server's clock.
CREATE TABLE node (
    id UUID PRIMARY KEY,
    label TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    draining BOOLEAN NOT NULL,
    lease_until TIMESTAMPTZ NOT NULL
);

-- Commands for sessions that another node owns. `place` is given under the lock of the session's row.
CREATE TABLE command (
    id UUID PRIMARY KEY,
    place BIGSERIAL NOT NULL,
    session UUID NOT NULL,
    origin UUID NOT NULL,
    body TEXT NOT NULL,
    answer TEXT
);
CREATE INDEX command_waiting ON command (session, place) WHERE answer IS NULL;
CREATE INDEX command_answered ON command (origin) WHERE answer IS NOT NULL;

-- The log. A row holds the entries `first` to `last`: one fact (0), deltas with their text (1), deltas whose text is in
-- their whole message (2), or one whole message (3). `epoch` is its writer's. `body` is text and not JSONB, which
-- takes no NUL and keeps no order of fields. In parts, so that each is vacuumed by itself after compaction.
CREATE TABLE entry (
    session UUID NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    kind SMALLINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, first)
) PARTITION BY HASH (session);
DO $$
BEGIN
    FOR part IN 0..7 LOOP
        EXECUTE format('CREATE TABLE entry_%s PARTITION OF entry FOR VALUES WITH (MODULUS 8, REMAINDER %s) '
            'WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_insert_scale_factor = 0.5)', part, part);
    END LOOP;
END $$;

-- Folds of the entries. Copies of a session share ids, so the session is part of the key.
-- `ended_as` is the outcome in one number: 3 completed, 4 refused, 5 cancelled, 6 failed.
CREATE TABLE run (
    id UUID NOT NULL,
    session UUID NOT NULL,
    first BIGINT NOT NULL,
    began_at BIGINT NOT NULL,
    started BIGINT,
    ended BIGINT,
    ended_at BIGINT,
    ended_as SMALLINT,
    outcome TEXT,
    compacted BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (id, session)
);
CREATE INDEX run_open ON run (id, session) WHERE ended IS NULL;
CREATE INDEX run_active ON run (session) WHERE ended IS NULL AND started IS NOT NULL;
CREATE INDEX run_to_compact ON run (ended_at) WHERE NOT compacted AND ended IS NOT NULL;
CREATE INDEX run_by_session ON run (session, first);
CREATE INDEX run_by_time ON run (COALESCE(ended_at, began_at) DESC, id DESC);

-- `held` ones are asked by a live child, which dies with the server: their runs do not wait for people alone.
CREATE TABLE question (
    id UUID NOT NULL,
    session UUID NOT NULL,
    run UUID,
    asked BIGINT NOT NULL,
    answered BIGINT,
    held BOOLEAN NOT NULL,
    PRIMARY KEY (id, session)
);
CREATE INDEX question_open ON question (session, run) WHERE answered IS NULL;
CREATE INDEX question_by_session ON question (session);

-- Names that clients chose.
CREATE TABLE alias (
    principal TEXT COLLATE "C" NOT NULL,
    door TEXT COLLATE "C" NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    session UUID NOT NULL,
    PRIMARY KEY (principal, door, namespace, text)
);
CREATE INDEX alias_by_session ON alias (session);

-- Logs of no session, and where each ends: several nodes write to one, and take turns by its row here.
CREATE TABLE scope_head (
    name TEXT COLLATE "C" PRIMARY KEY,
    head BIGINT NOT NULL
);
CREATE TABLE scope (
    name TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    fact TEXT NOT NULL,
    PRIMARY KEY (name, seq)
);

-- Views at a place: a cache, may be emptied at any time.
CREATE TABLE snapshot (
    session UUID NOT NULL,
    seq BIGINT NOT NULL,
    version BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (session, seq)
);
