//! How agents did lately: averages over the latest runs of whoever asks, from the log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gander_domain::caller::Caller;
use gander_domain::roster::spell_as_requested;
use gander_domain::{AgentManifest, Entry, Event, Outcome, Principal, RunId, Seq, ServiceError, Timestamp};
use gander_services::sessions::SessionFilter;
use gander_services::slash_commands;
use gander_store::{DeltaForm, Limit};
use gander_wire::acp_rest::{AcpRestError, AcpRestRefusal, AgentStats, acp_rest_agent_manifest};
use serde_json::Value;

use super::{AcpRest, acp_rest_session_refusal, acp_rest_store_refusal};

/// Sessions that are looked at.
const MAX_SESSIONS_SCANNED: u32 = 50;

/// How long figures are good enough.
const STATS_TTL: Duration = Duration::from_secs(30);

/// Figures that were worked out lately.
#[derive(Default)]
pub(super) struct StatsCache(Mutex<HashMap<Principal, (Instant, AgentRunTotals)>>);

type AgentRunTotals = HashMap<String, RunTotals>;

#[derive(Clone, Copy, Default)]
struct RunTotals {
    runs: u32,
    completed: u32,
    tokens: u64,
    micros: i64,
}

impl AcpRest {
    /// Agents as this protocol shows them; all, or from the `offset`th at most `limit`.
    pub async fn list_agents(
        &self,
        caller: &Caller,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<Value>, AcpRestRefusal> {
        let sums = self.load_run_totals(caller).await?;
        let manifests = self.services.agents.roster().all_manifests();
        let page = manifests.iter().skip(offset).take(limit);
        // Agents elsewhere are not asked for a list: they may be slow to say. Whoever wants their commands names one.
        let base = slash_commands::list_common_slash_commands(&self.services, caller)
            .await
            .map_err(acp_rest_service_refusal)?;
        let native = match manifests.iter().find(|agent| agent.family.is_some()) {
            Some(agent) => slash_commands::list_agent_slash_commands(&self.services, caller, &agent.name).await,
            None => Ok(Vec::new()),
        };
        let native = native.map_err(acp_rest_service_refusal)?;
        let shown = |agent: &Arc<AgentManifest>| {
            let commands = if agent.family.is_some() { &native } else { &base };
            acp_rest_agent_manifest(
                &self.services.with_accepted_media(agent),
                commands,
                acp_rest_agent_stats(&sums, agent),
            )
        };
        Ok(page.map(shown).collect())
    }

    /// One of them.
    pub async fn describe_agent(&self, caller: &Caller, name: &str) -> Result<Value, AcpRestRefusal> {
        let unknown = || AcpRestRefusal::not_found(format!("no such agent: {name}"));
        let agent = self.services.agents.manifest(name).ok_or_else(unknown)?;
        let commands = slash_commands::list_agent_slash_commands(&self.services, caller, &agent.name).await;
        let commands = commands.map_err(acp_rest_service_refusal)?;
        let figures = acp_rest_agent_stats(&self.load_run_totals(caller).await?, &agent);
        let mut shown = acp_rest_agent_manifest(&self.services.with_accepted_media(&agent), &commands, figures);
        shown["name"] = spell_as_requested(&agent.name, name).into();
        Ok(shown)
    }

    async fn load_run_totals(&self, caller: &Caller) -> Result<AgentRunTotals, AcpRestRefusal> {
        let principal = &caller.principal;
        if let Some((at, sums)) = self.figures.lock().get(principal).filter(|(at, _)| at.elapsed() < STATS_TTL) {
            tracing::trace!(?at, "figures are fresh");
            return Ok(sums.clone());
        }
        let mut sums = AgentRunTotals::new();
        let filter = SessionFilter { limit: MAX_SESSIONS_SCANNED, ..SessionFilter::default() };
        let store = self.services.hub.store();
        for summary in self.services.sessions.list(caller, filter).await.map_err(acp_rest_session_refusal)?.sessions {
            let page = store.read(summary.session, Seq::ZERO, Limit::default(), DeltaForm::Joined).await;
            sums.entry(summary.agent).or_default().add_runs(&page.map_err(acp_rest_store_refusal)?);
        }
        self.figures.lock().insert(principal.clone(), (Instant::now(), sums.clone()));
        Ok(sums)
    }
}

impl StatsCache {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Principal, (Instant, AgentRunTotals)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunTotals {
    fn add_runs(&mut self, entries: &[Entry]) {
        let mut active: Option<(RunId, Timestamp)> = None;
        for entry in entries {
            if let (Event::RunStarted { .. }, Some(run)) = (&entry.event, entry.run) {
                active = Some((run, entry.at));
            } else if let Event::UsageAdded { usage } = &entry.event {
                self.tokens += usage.input + usage.output;
            } else if let Event::RunEnded { outcome } = &entry.event
                && let Some((_, began)) = active.take_if(|(run, _)| entry.run == Some(*run))
            {
                self.runs += 1;
                self.completed +=
                    u32::from(matches!(outcome, Outcome::Completed { stop } if stop.limit_message().is_none()));
                self.micros += entry.at.as_micros() - began.as_micros();
            }
        }
    }
}

fn acp_rest_agent_stats(sums: &AgentRunTotals, agent: &AgentManifest) -> Option<AgentStats> {
    let sum = sums.get(&agent.name).filter(|sum| sum.runs > 0)?;
    let runs = f64::from(sum.runs);
    Some(AgentStats {
        avg_run_tokens: sum.tokens as f64 / runs,
        avg_run_time_seconds: sum.micros as f64 / 1e6 / runs,
        success_rate: f64::from(sum.completed) * 100.0 / runs,
    })
}

fn acp_rest_service_refusal(error: ServiceError) -> AcpRestRefusal {
    AcpRestRefusal { status: 500, error: AcpRestError::server_error(error.to_string()) }
}
