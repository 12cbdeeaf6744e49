-- Adds facts to a scope's log; gives its new end. Fails with GA001 if the log does not end where the writer thinks.
CREATE FUNCTION append_scope(scope_name TEXT, written_at BIGINT, expected BIGINT, facts TEXT[]) RETURNS BIGINT
LANGUAGE plpgsql AS $$
DECLARE
    count BIGINT := cardinality(facts);
    reached BIGINT;
BEGIN
    INSERT INTO scope_head AS h (name, head) VALUES (scope_name, count)
        ON CONFLICT (name) DO UPDATE SET head = h.head + count RETURNING head INTO reached;
    IF expected IS NOT NULL AND expected <> reached - count THEN
        RAISE EXCEPTION 'scope has grown' USING ERRCODE = 'GA001', DETAIL = format('%s/%s', reached - count, expected);
    END IF;
    INSERT INTO scope (name, seq, at, fact)
        SELECT scope_name, reached - count + f.place, written_at, f.fact
        FROM unnest(facts) WITH ORDINALITY AS f (fact, place);
    RETURN reached;
END $$;

-- Adds new sessions, then names for them. The sessions' first entries are appended like any others.
CREATE FUNCTION create_sessions(
    ids UUID[], owners TEXT[], workspaces TEXT[], parents UUID[], creations BIGINT[], pins TEXT[],
    alias_principals TEXT[], alias_doors TEXT[], alias_namespaces TEXT[], alias_texts TEXT[], alias_sessions UUID[]
) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO session (id, epoch, head, owner, workspace, parent, created_at, agent, updated_at,
            spent_input, spent_output, spent_cost, pinned_to)
        SELECT i.id, 1, 0, i.owner, i.workspace, i.parent, i.created_at, '', 0, 0, 0, 0, i.pinned_to
        FROM unnest(ids, owners, workspaces, parents, creations, pins)
            AS i (id, owner, workspace, parent, created_at, pinned_to);
    INSERT INTO alias (principal, door, namespace, text, session)
        SELECT * FROM unnest(alias_principals, alias_doors, alias_namespaces, alias_texts, alias_sessions);
END $$;

-- Writes what entries change in the side tables. `sessions` are the only ones whose changes count.
CREATE FUNCTION apply_folds(
    sessions UUID[],
    run_ids UUID[], run_sessions UUID[], run_firsts BIGINT[], run_begins BIGINT[], run_starts BIGINT[],
    run_ends BIGINT[], run_end_times BIGINT[], run_ended_as SMALLINT[], run_outcomes TEXT[],
    question_ids UUID[], question_sessions UUID[], question_runs UUID[], question_asked BIGINT[],
    question_answered BIGINT[], question_held BOOLEAN[],
    summary_sessions UUID[], titles TEXT[], searches TEXT[], agents TEXT[], archives BOOLEAN[], message_counts BIGINT[],
    updates BIGINT[], policies TEXT[], policies_chosen BOOLEAN[], resets BOOLEAN[], inputs BIGINT[], outputs BIGINT[],
    costs BIGINT[], last_inputs BIGINT[], last_outputs BIGINT[]
) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(run_ids) > 0 THEN
        INSERT INTO run AS r (id, session, first, began_at, started, ended, ended_at, ended_as, outcome)
            SELECT i.* FROM unnest(run_ids, run_sessions, run_firsts, run_begins, run_starts, run_ends, run_end_times,
                    run_ended_as, run_outcomes) AS i (id, session, first, began_at, started, ended, ended_at, ended_as, outcome)
                WHERE i.session = ANY (sessions)
            ON CONFLICT (id, session) DO UPDATE SET started = COALESCE(r.started, excluded.started),
                ended = COALESCE(r.ended, excluded.ended), ended_at = COALESCE(r.ended_at, excluded.ended_at),
                ended_as = COALESCE(r.ended_as, excluded.ended_as), outcome = COALESCE(r.outcome, excluded.outcome);
    END IF;
    IF cardinality(question_ids) > 0 THEN
        INSERT INTO question AS q (id, session, run, asked, answered, held)
            SELECT i.* FROM unnest(question_ids, question_sessions, question_runs, question_asked, question_answered,
                    question_held) AS i (id, session, run, asked, answered, held)
                WHERE i.session = ANY (sessions)
            ON CONFLICT (id, session) DO UPDATE SET answered = COALESCE(q.answered, excluded.answered);
    END IF;
    UPDATE session s SET
            title = COALESCE(i.title, s.title), search = COALESCE(i.search, s.search),
            agent = COALESCE(i.agent, s.agent), archived = COALESCE(i.archived, s.archived),
            messages = s.messages + i.messages, updated_at = GREATEST(s.updated_at, i.updated_at),
            policy = COALESCE(i.policy, s.policy), policy_chosen = COALESCE(i.policy_chosen, s.policy_chosen),
            spent_input = CASE WHEN i.reset THEN 0 ELSE s.spent_input END + i.input,
            spent_output = CASE WHEN i.reset THEN 0 ELSE s.spent_output END + i.output,
            spent_cost = CASE WHEN i.reset THEN 0 ELSE s.spent_cost END + i.cost,
            last_input = COALESCE(i.last_input, CASE WHEN i.reset THEN NULL ELSE s.last_input END),
            last_output = COALESCE(i.last_output, CASE WHEN i.reset THEN NULL ELSE s.last_output END),
            state = CASE
                WHEN (SELECT 1 FROM question q WHERE q.session = s.id AND q.answered IS NULL AND q.run IS NOT NULL LIMIT 1) = 1
                    THEN 2
                WHEN (SELECT 1 FROM run r WHERE r.session = s.id AND r.ended IS NULL AND r.started IS NOT NULL LIMIT 1) = 1
                    THEN 1
                ELSE 0 END
        FROM unnest(summary_sessions, titles, searches, agents, archives, message_counts, updates, policies,
                policies_chosen, resets, inputs, outputs, costs, last_inputs, last_outputs)
            AS i (id, title, search, agent, archived, messages, updated_at, policy, policy_chosen, reset, input, output,
                cost, last_input, last_output)
        WHERE s.id = i.id AND i.id = ANY (sessions);
END $$;

-- Everything that a node has to write, in one commit. Gives the sessions that were appended to and where they end: one that
-- is not among them has another writer, is deleted, or does not end at `befores` (NULL: wherever it ends), and nothing of
-- what belongs to it is written. Sessions come in the order of their ids, so that no two writers wait for each other.
CREATE FUNCTION append_batch(
    new_ids UUID[], new_owners TEXT[], new_workspaces TEXT[], new_parents UUID[], new_creations BIGINT[], new_pins TEXT[],
    alias_principals TEXT[], alias_doors TEXT[], alias_namespaces TEXT[], alias_texts TEXT[], alias_sessions UUID[],
    ids UUID[], epochs BIGINT[], befores BIGINT[], heads BIGINT[], nodes UUID[],
    entry_sessions UUID[], entry_epochs BIGINT[], entry_firsts BIGINT[], entry_lasts BIGINT[], entry_kinds SMALLINT[],
    entry_bodies TEXT[],
    run_ids UUID[], run_sessions UUID[], run_firsts BIGINT[], run_begins BIGINT[], run_starts BIGINT[],
    run_ends BIGINT[], run_end_times BIGINT[], run_ended_as SMALLINT[], run_outcomes TEXT[],
    question_ids UUID[], question_sessions UUID[], question_runs UUID[], question_asked BIGINT[],
    question_answered BIGINT[], question_held BOOLEAN[],
    summary_sessions UUID[], titles TEXT[], searches TEXT[], agents TEXT[], archives BOOLEAN[], message_counts BIGINT[],
    updates BIGINT[], policies TEXT[], policies_chosen BOOLEAN[], resets BOOLEAN[], inputs BIGINT[], outputs BIGINT[],
    costs BIGINT[], last_inputs BIGINT[], last_outputs BIGINT[],
    scope_sessions UUID[], scope_names TEXT[], scope_times BIGINT[], scope_expected BIGINT[], scope_sizes BIGINT[],
    scope_facts TEXT[],
    snapshot_sessions UUID[], snapshot_seqs BIGINT[], snapshot_versions BIGINT[], snapshot_bodies BYTEA[],
    answer_ids UUID[], answer_bodies TEXT[]
) RETURNS TABLE (appended UUID, reached BIGINT, unowned_work BOOLEAN, answered UUID[]) LANGUAGE plpgsql AS $$
DECLARE
    accepted UUID[];
    ends BIGINT[];
    fact BIGINT := 1;
    origins UUID[] := '{}';
BEGIN
    IF cardinality(new_ids) > 0 THEN
        PERFORM create_sessions(new_ids, new_owners, new_workspaces, new_parents, new_creations, new_pins,
            alias_principals, alias_doors, alias_namespaces, alias_texts, alias_sessions);
    END IF;
    WITH moved AS (
        UPDATE session s SET head = COALESCE(i.head, s.head), node = i.node, has_work = i.node IS NOT NULL
            FROM unnest(ids, epochs, befores, heads, nodes) AS i (id, epoch, before, head, node)
            WHERE s.id = i.id AND s.epoch = i.epoch AND s.deleted_at IS NULL AND s.head = COALESCE(i.before, s.head)
            RETURNING s.id, s.head
    )
    SELECT COALESCE(array_agg(moved.id), '{}'), COALESCE(array_agg(moved.head), '{}') INTO accepted, ends FROM moved;
    INSERT INTO entry (session, epoch, first, last, kind, body)
        SELECT e.* FROM unnest(entry_sessions, entry_epochs, entry_firsts, entry_lasts, entry_kinds, entry_bodies)
            AS e (session, epoch, first, last, kind, body)
        WHERE e.session = ANY (accepted);
    IF cardinality(summary_sessions) > 0 THEN
        PERFORM apply_folds(accepted, run_ids, run_sessions, run_firsts, run_begins, run_starts, run_ends, run_end_times,
            run_ended_as, run_outcomes, question_ids, question_sessions, question_runs, question_asked, question_answered,
            question_held, summary_sessions, titles, searches, agents, archives, message_counts, updates, policies,
            policies_chosen, resets, inputs, outputs, costs, last_inputs, last_outputs);
    END IF;
    FOR place IN 1..cardinality(scope_names) LOOP
        IF scope_sessions[place] = ANY (accepted) THEN
            PERFORM append_scope(scope_names[place], scope_times[place], scope_expected[place],
                scope_facts[fact:fact + scope_sizes[place] - 1]);
        END IF;
        fact := fact + scope_sizes[place];
    END LOOP;
    IF cardinality(snapshot_sessions) > 0 THEN
        INSERT INTO snapshot AS p (session, seq, version, body)
            SELECT i.* FROM unnest(snapshot_sessions, snapshot_seqs, snapshot_versions, snapshot_bodies)
                AS i (session, seq, version, body)
                WHERE i.session = ANY (accepted)
            ON CONFLICT (session, seq) DO UPDATE SET version = excluded.version, body = excluded.body;
    END IF;
    IF cardinality(answer_ids) > 0 THEN
        WITH given AS (
            UPDATE command c SET answer = i.body FROM unnest(answer_ids, answer_bodies) AS i (id, body)
                WHERE c.id = i.id AND c.answer IS NULL AND c.session = ANY (accepted) RETURNING c.session, c.origin
        ), counted AS (
            UPDATE session s SET commands = s.commands - g.number
                FROM (SELECT given.session, count(*) AS number FROM given GROUP BY given.session) g WHERE s.id = g.session
        )
        SELECT COALESCE(array_agg(DISTINCT given.origin), '{}') INTO origins FROM given;
    END IF;
    RETURN QUERY SELECT a.id, a.head, s.node IS NULL AND s.commands > 0, origins
        FROM unnest(accepted, ends) AS a (id, head) JOIN session s ON s.id = a.id;
END $$;
