-- `append_batch` that knows the session of each answer, beside the older one, which nodes of the version before call.

-- Everything that a node has to write, in one commit. Gives the sessions that were appended to and where they end: one that
-- is not among them has another writer, is deleted, or does not end at `befores` (NULL: wherever it ends), and nothing of
-- what belongs to it is written. Nor is one among them that has entries and answers a command that was withdrawn: its sender
-- was told that nobody took it. Sessions come in the order of their ids, so that no two writers wait for each other.
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
    answer_ids UUID[], answer_bodies TEXT[], answer_sessions UUID[]
) RETURNS TABLE (appended UUID, reached BIGINT, unowned_work BOOLEAN, answered UUID[]) LANGUAGE plpgsql AS $$
DECLARE
    accepted UUID[];
    ends BIGINT[];
    fact BIGINT := 1;
    origins UUID[] := '{}';
    withdrawn UUID[] := '{}';
BEGIN
    IF cardinality(new_ids) > 0 THEN
        PERFORM create_sessions(new_ids, new_owners, new_workspaces, new_parents, new_creations, new_pins,
            alias_principals, alias_doors, alias_namespaces, alias_texts, alias_sessions);
    END IF;
    IF cardinality(answer_ids) > 0 THEN
        -- First the lock, which whoever withdraws takes too: the next statement sees what was withdrawn until then.
        PERFORM s.id FROM session s WHERE s.id = ANY (ids) ORDER BY s.id FOR UPDATE;
        SELECT COALESCE(array_agg(a.session), '{}') INTO withdrawn FROM unnest(answer_ids, answer_sessions) AS a (id, session)
            WHERE NOT EXISTS (SELECT 1 FROM command c WHERE c.id = a.id);
    END IF;
    WITH moved AS (
        UPDATE session s SET head = COALESCE(i.head, s.head), node = i.node, has_work = i.node IS NOT NULL
            FROM unnest(ids, epochs, befores, heads, nodes) AS i (id, epoch, before, head, node)
            WHERE s.id = i.id AND s.epoch = i.epoch AND s.deleted_at IS NULL AND s.head = COALESCE(i.before, s.head)
                AND (i.head IS NULL OR s.id <> ALL (withdrawn))
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
