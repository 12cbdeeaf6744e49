//! Evaluations: sets of cases and the results of their runs, in one small log per principal and agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use gander_domain::authorize::Denied;
use gander_domain::caller::Caller;
use gander_store::{FactEntry, FactLog, FactState, Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most sets of one agent.
const MAX_SETS: usize = 256;

/// Most cases of one set.
const MAX_CASES: usize = 256;

/// Results that are kept of one agent; older ones go.
const MAX_RESULTS: usize = 64;

/// Why a set, case or result is not kept or not found.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// There is one of this name.
    #[error("{0} already exists")]
    Exists(String),
    /// There is none of this name.
    #[error("{0} not found")]
    Unknown(String),
    /// There are too many.
    #[error("{0}")]
    Full(String),
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One principal's evaluations of one agent.
pub struct Evaluations {
    log: FactLog<EvaluationState>,
    may_write: Result<(), Denied>,
}

/// The cases of a set, by id.
pub type EvalSet = BTreeMap<String, Value>;

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum EvaluationFact {
    SetCreated { set: String },
    SetRemoved { set: String },
    CaseSaved { set: String, case: String, value: Value },
    CaseRemoved { set: String, case: String },
    ResultSaved { result: String, value: Value },
}

#[derive(Default)]
struct EvaluationState {
    sets: BTreeMap<String, EvalSet>,
    /// Oldest first.
    results: Vec<(String, Value)>,
}

impl FactState for EvaluationState {
    type Fact = EvaluationFact;

    fn apply(&mut self, fact: EvaluationFact, _: FactEntry) {
        match fact {
            EvaluationFact::SetCreated { set } => drop(self.sets.entry(set).or_default()),
            EvaluationFact::SetRemoved { set } => drop(self.sets.remove(&set)),
            EvaluationFact::CaseSaved { set, case, value } => {
                drop(self.sets.entry(set).or_default().insert(case, value));
            }
            EvaluationFact::CaseRemoved { set, case } => {
                drop(self.sets.get_mut(&set).and_then(|cases| cases.remove(&case)));
            }
            EvaluationFact::ResultSaved { result, value } => {
                self.results.push((result, value));
                let surplus = self.results.len().saturating_sub(MAX_RESULTS);
                self.results.drain(..surplus);
            }
        }
    }

    fn facts(&self) -> Vec<EvaluationFact> {
        let mut facts = Vec::new();
        for (set, cases) in &self.sets {
            facts.push(EvaluationFact::SetCreated { set: set.clone() });
            facts.extend(cases.iter().map(|(case, value)| EvaluationFact::CaseSaved {
                set: set.clone(),
                case: case.clone(),
                value: value.clone(),
            }));
        }
        let results = self.results.iter();
        facts.extend(
            results.map(|(result, value)| EvaluationFact::ResultSaved { result: result.clone(), value: value.clone() }),
        );
        facts
    }

    fn approximate_fact_count(&self) -> usize {
        self.sets.values().map(|cases| cases.len() + 1).sum::<usize>() + self.results.len()
    }
}

impl Evaluations {
    /// This caller's, of this agent.
    pub fn open(store: &Arc<dyn Store>, caller: &Caller, agent: &str) -> Self {
        // A token that is bound to one user of ADK has its own: cases hold what users said.
        let user = caller.adk_user.as_deref().map(|user| format!("/{user}")).unwrap_or_default();
        let scope = format!("evaluations/{}/{agent}{user}", caller.principal);
        Self { log: FactLog::new(Arc::clone(store), scope), may_write: caller.may_prompt() }
    }

    /// The names of all sets.
    pub async fn list_sets(&self) -> Result<Vec<String>, EvaluationError> {
        Ok(self.read_state().await?.sets.into_keys().collect())
    }

    /// A set with its cases.
    pub async fn get_set(&self, set: &str) -> Result<EvalSet, EvaluationError> {
        self.read_state().await?.sets.remove(set).ok_or_else(|| unknown_evaluation_set(set))
    }

    /// Makes an empty set.
    pub async fn create_set(&self, set: &str) -> Result<(), EvaluationError> {
        self.may_write.clone()?;
        let sets = self.read_state().await?.sets;
        if sets.contains_key(set) {
            return Err(EvaluationError::Exists(format!("Eval set `{set}`")));
        }
        if sets.len() >= MAX_SETS {
            return Err(EvaluationError::Full(format!("an agent has at most {MAX_SETS} eval sets")));
        }
        self.append(&EvaluationFact::SetCreated { set: set.to_owned() }).await
    }

    /// Removes a set and its cases.
    pub async fn remove_set(&self, set: &str) -> Result<(), EvaluationError> {
        self.may_write.clone()?;
        self.get_set(set).await?;
        self.append(&EvaluationFact::SetRemoved { set: set.to_owned() }).await
    }

    /// Adds a case; its name must be free.
    pub async fn add_case(&self, set: &str, case: &str, value: Value) -> Result<(), EvaluationError> {
        self.may_write.clone()?;
        let cases = self.get_set(set).await?;
        if cases.contains_key(case) {
            return Err(EvaluationError::Exists(format!("Eval id `{case}` in eval set `{set}`")));
        }
        if cases.len() >= MAX_CASES {
            return Err(EvaluationError::Full(format!("an eval set has at most {MAX_CASES} cases")));
        }
        self.append(&EvaluationFact::CaseSaved { set: set.to_owned(), case: case.to_owned(), value }).await
    }

    /// Puts a case in the place of the one of its name.
    pub async fn replace_case(&self, set: &str, case: &str, value: Value) -> Result<(), EvaluationError> {
        self.may_write.clone()?;
        self.get_case(set, case).await?;
        self.append(&EvaluationFact::CaseSaved { set: set.to_owned(), case: case.to_owned(), value }).await
    }

    /// One case.
    pub async fn get_case(&self, set: &str, case: &str) -> Result<Value, EvaluationError> {
        let missing = || EvaluationError::Unknown(format!("Eval set `{set}` or Eval `{case}`"));
        self.get_set(set).await?.remove(case).ok_or_else(missing)
    }

    /// Removes a case.
    pub async fn remove_case(&self, set: &str, case: &str) -> Result<(), EvaluationError> {
        self.may_write.clone()?;
        self.get_case(set, case).await?;
        self.append(&EvaluationFact::CaseRemoved { set: set.to_owned(), case: case.to_owned() }).await
    }

    /// The names of the results that are kept, oldest first.
    pub async fn list_results(&self) -> Result<Vec<String>, EvaluationError> {
        Ok(self.read_state().await?.results.into_iter().map(|(result, _)| result).collect())
    }

    /// One result.
    pub async fn get_result(&self, wanted: &str) -> Result<Value, EvaluationError> {
        let mut results = self.read_state().await?.results.into_iter();
        let found = results.find(|(result, _)| result == wanted).map(|(_, value)| value);
        found.ok_or_else(|| EvaluationError::Unknown(format!("Eval result `{wanted}`")))
    }

    /// Keeps a result.
    pub async fn save_result(&self, result: &str, value: Value) -> Result<(), EvaluationError> {
        self.may_write.clone()?;
        self.append(&EvaluationFact::ResultSaved { result: result.to_owned(), value }).await
    }

    async fn read_state(&self) -> Result<EvaluationState, StoreError> {
        self.log.fold_all().await
    }

    async fn append(&self, fact: &EvaluationFact) -> Result<(), EvaluationError> {
        Ok(self.log.append_fact(fact).await.map(drop)?)
    }
}

fn unknown_evaluation_set(set: &str) -> EvaluationError {
    EvaluationError::Unknown(format!("Eval set `{set}`"))
}
