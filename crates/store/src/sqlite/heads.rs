//! Where each log ends and who may write to it: the writer's memory of the database, loaded on demand.

use std::collections::HashMap;

use gander_domain::{Entry, Event, Seq, SessionId};
use rusqlite::Connection;

use super::read::read_claim;
use super::writer::SqlitePending;
use crate::{Append, Claim, Epoch, ScopeAppend, StoreError};

/// More are forgotten and loaded again.
const MAX_CACHED_HEADS: usize = 65_536;

#[derive(Default)]
pub(super) struct Heads {
    sessions: HashMap<SessionId, Claim>,
    scopes: HashMap<String, Seq>,
}

impl Heads {
    /// Lets an append in if it comes from the writer and follows the end, and moves the end.
    pub(super) fn check_writer(
        &mut self,
        connection: &Connection,
        pending: &mut SqlitePending,
    ) -> Result<(), StoreError> {
        let Append { session, epoch, entries, .. } = &pending.append;
        let claim = self.claim_of(connection, *session)?;
        check_head_epoch(claim.epoch, *epoch)?;
        let head = check_head_order(claim.head, entries)?;
        let session = *session;
        pending.scope_heads = self.admit_scopes(connection, &pending.append.scopes)?;
        pending.head = head;
        self.set_claim(session, Claim { head, ..claim });
        Ok(())
    }

    /// Lets a new session in.
    pub(super) fn admit_new(&mut self, connection: &Connection, pending: &mut SqlitePending) -> Result<(), StoreError> {
        let session = pending.append.session;
        if self.sessions.contains_key(&session) {
            return Err(StoreError::Exists(session));
        }
        pending.append.epoch = Epoch::FIRST;
        let first = pending.append.entries.first().map(|entry| &entry.event);
        if !matches!(first, Some(Event::SessionCreated { .. })) {
            return Err(StoreError::Invalid("first entry does not create the session".to_owned()));
        }
        let head = check_head_order(Seq::ZERO, &pending.append.entries)?;
        pending.scope_heads = self.admit_scopes(connection, &pending.append.scopes)?;
        pending.head = head;
        self.set_claim(session, Claim { epoch: Epoch::FIRST, head });
        Ok(())
    }

    /// Who may write to a session, and where it ends.
    pub(super) fn claim_of(&mut self, connection: &Connection, session: SessionId) -> Result<Claim, StoreError> {
        if let Some(claim) = self.sessions.get(&session) {
            return Ok(*claim);
        }
        let claim = read_claim(connection, session)?;
        self.set_claim(session, claim);
        Ok(claim)
    }

    pub(super) fn set_claim(&mut self, session: SessionId, claim: Claim) {
        if self.sessions.len() >= MAX_CACHED_HEADS {
            self.sessions.clear();
        }
        self.sessions.insert(session, claim);
    }

    pub(super) fn forget_append(&mut self, append: &Append) {
        self.forget_session(append.session);
        append.scopes.iter().for_each(|scope| self.forget_scope(&scope.scope));
    }

    pub(super) fn forget_session(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    pub(super) fn forget_scope(&mut self, scope: &str) {
        self.scopes.remove(scope);
    }

    /// Where each scope ends before its facts are added, if that is where they belong.
    pub(super) fn admit_scopes(
        &mut self,
        connection: &Connection,
        scopes: &[ScopeAppend],
    ) -> Result<Vec<Seq>, StoreError> {
        if self.scopes.len() >= MAX_CACHED_HEADS {
            self.scopes.clear();
        }
        let mut ends: HashMap<&str, Seq> = HashMap::new();
        let mut heads = Vec::with_capacity(scopes.len());
        for append in scopes {
            let head = match ends.get(append.scope.as_str()) {
                Some(head) => *head,
                None => self.scope_head(connection, &append.scope)?,
            };
            check_head_scope(head, append)?;
            heads.push(head);
            ends.insert(&append.scope, Seq(head.0 + append.facts.len() as u64));
        }
        self.scopes.extend(ends.into_iter().map(|(scope, head)| (scope.to_owned(), head)));
        Ok(heads)
    }

    fn scope_head(&mut self, connection: &Connection, scope: &str) -> Result<Seq, StoreError> {
        if let Some(head) = self.scopes.get(scope) {
            return Ok(*head);
        }
        let head: i64 = connection
            .prepare_cached("SELECT COALESCE(MAX(seq), 0) FROM scope WHERE name = ?")
            .and_then(|mut statement| statement.query_row([scope], |row| row.get(0)))?;
        Ok(Seq(head as u64))
    }
}

#[cfg(not(bug = "ignore_epoch"))]
fn check_head_epoch(current: Epoch, found: Epoch) -> Result<(), StoreError> {
    if current == found { Ok(()) } else { Err(StoreError::Fenced { current }) }
}

#[cfg(bug = "ignore_epoch")]
fn check_head_epoch(_current: Epoch, _found: Epoch) -> Result<(), StoreError> {
    Ok(())
}

/// The new end, if the entries follow the old one.
fn check_head_order(head: Seq, entries: &[Entry]) -> Result<Seq, StoreError> {
    entries.iter().try_fold(head, |head, entry| {
        let expected = head.next();
        if entry.seq == expected { Ok(expected) } else { Err(StoreError::Gap { expected, found: entry.seq }) }
    })
}

fn check_head_scope(head: Seq, append: &ScopeAppend) -> Result<(), StoreError> {
    match append.after {
        Some(after) if after != head => Err(StoreError::Gap { expected: head.next(), found: after.next() }),
        Some(_) | None => Ok(()),
    }
}
