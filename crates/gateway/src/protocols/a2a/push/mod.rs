//! Push notifications: who wants a task's updates sent where. Facts in their own log, delivered from the session's.

mod credentials;
mod delivery;
mod http_post;
mod journal;
mod other_nodes;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::sanitize;
use gander_domain::{Principal, RunId, Seq, SessionId};
use gander_runtime::hub::Hub;
use gander_services::server_vault::ServerVault;
use gander_store::{Durability, StoreError};
use gander_tools::{Blocked, Guard};
use gander_wire::a2a::{A2aDialect, A2aError, A2aErrorKind, PushConfig};
use http::HeaderValue;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::{A2aCaller, TaskRef, a2a_store_error};
use journal::{DeliveryState, PushFact, PushJournal};

/// So many receivers may a task have.
const MAX_RECEIVERS_PER_TASK: usize = 16;

/// So many receivers may wait for the updates of one principal's tasks. Those that were told everything do not count.
const MAX_OPEN_PER_PRINCIPAL: usize = 256;

/// Push notifications. Cheap to clone.
#[derive(Clone)]
pub struct PushNotifications {
    inner: Arc<PushInner>,
}

struct PushInner {
    hub: Hub,
    facts: PushJournal,
    guard: Guard,
    held: Mutex<BTreeMap<(RunId, String), ActiveReceiver>>,
    tasks: TaskTracker,
    /// This is the node that sends what every node could.
    is_leader: AtomicBool,
    stop: CancellationToken,
}

/// A receiver, and how far it was told.
#[derive(Clone, Debug)]
struct ActiveReceiver {
    receiver: Receiver,
    /// False once it was told everything, or was given up.
    open: bool,
    /// This node sends it.
    delivering: bool,
    stop: CancellationToken,
}

/// Who wants what sent where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receiver {
    principal: Principal,
    session: SessionId,
    run: RunId,
    /// The name under which the receiver knows the session.
    context: String,
    /// Where the receiver reads what the session keeps.
    #[serde(default, rename = "shelf")]
    artifacts_url: Option<String>,
    /// The run's first entry comes after this.
    first: Seq,
    /// The receiver has everything up to here.
    #[serde(rename = "told")]
    delivered_to: Seq,
    dialect: A2aDialect,
    config: PushConfig,
    /// It is sent with credentials, which are in the vault of the node that was asked for it, or in that of all nodes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    guarded: bool,
}

impl PushNotifications {
    /// Goes on with what was wanted before. `allowed` are receivers in private networks, as `host` or `host:port`.
    pub async fn load(hub: Hub, allowed: Vec<String>, vault: ServerVault) -> Result<Self, StoreError> {
        let (facts, receivers) = PushJournal::load(Arc::clone(hub.store()), vault).await?;
        let inner = PushInner {
            is_leader: AtomicBool::new(hub.role().is_none()),
            hub,
            facts,
            guard: Guard::new(allowed),
            held: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let push = Self { inner: Arc::new(inner) };
        for (receiver, over) in receivers {
            push.start_delivery(receiver, over);
        }
        Ok(push)
    }

    /// True if nobody waits for anything.
    pub fn is_idle(&self) -> bool {
        self.inner.tasks.is_empty()
    }

    /// Sends nothing more; the next start goes on.
    pub fn stop(&self) {
        self.inner.stop.cancel();
    }

    /// Whether anything may be sent there.
    pub(super) async fn check_receiver(&self, config: &PushConfig) -> Result<(), A2aError> {
        // The parser drops line breaks and tabs without a word, and would send elsewhere than what was written.
        if config
            .url
            .chars()
            .any(|letter| letter.is_control() || letter.is_whitespace() || sanitize::is_deceptive_char(letter))
        {
            return Err(A2aError::invalid_field(
                "url",
                "holds a line break, a blank or characters that nobody can see",
            ));
        }
        check_push_config(config)?;
        let url = Url::parse(&config.url)
            .map_err(|error| A2aError::invalid_field("url", format!("not an address: {error}")))?;
        match self.inner.guard.allowed_addresses(&url).await {
            // A name that leads nowhere yet is looked up, and checked, again whenever it is dialled.
            Err(Blocked::Unknown(host)) if host.trim_end_matches('.') != "localhost" => Ok(()),
            Ok(_) => Ok(()),
            Err(blocked) => Err(A2aError::invalid_field("url", blocked.to_string())),
        }
    }

    /// From here on the task's updates are sent there.
    pub(super) async fn set_config(
        &self,
        caller: &A2aCaller,
        task_ref: &TaskRef,
        mut config: PushConfig,
        delivered_to: Seq,
    ) -> Result<PushConfig, A2aError> {
        self.check_receiver(&config).await?;
        if config.id.is_empty() {
            config.id = Uuid::now_v7().to_string();
        }
        config.task_id = task_ref.run.to_string();
        let others = self.list_configs(task_ref.run);
        if others.len() >= MAX_RECEIVERS_PER_TASK && others.iter().all(|other| other.id != config.id) {
            return Err(A2aError::new(A2aErrorKind::TooMany, format!("task has too many receivers: {}", others.len())));
        }
        self.check_capacity(&caller.identity.principal, task_ref.run, &config.id)?;
        let receiver = Receiver {
            principal: caller.identity.principal.clone(),
            session: task_ref.session,
            run: task_ref.run,
            context: task_ref.context.clone(),
            artifacts_url: Some(caller.artifacts_url(task_ref.session)),
            first: task_ref.after,
            delivered_to,
            dialect: caller.dialect,
            guarded: credentials::has_push_credentials(&config),
            config: config.clone(),
        };
        self.inner
            .append_fact(&PushFact::ReceiverSet { receiver: Box::new(receiver.clone()) }, Durability::Barrier)
            .await
            .map_err(a2a_store_error)?;
        self.start_delivery(receiver, DeliveryState::Pending);
        Ok(config)
    }

    /// One principal does not fill the server's memory, connections and vault with receivers.
    fn check_capacity(&self, principal: &Principal, run: RunId, id: &str) -> Result<(), A2aError> {
        let held = self.inner.lock();
        let open = held.values().filter(|held| held.open && held.receiver.principal == *principal).count();
        if open < MAX_OPEN_PER_PRINCIPAL || held.contains_key(&(run, id.to_owned())) {
            return Ok(());
        }
        let text = format!("you have too many receivers of push notifications, delete some first: {open}");
        Err(A2aError::new(A2aErrorKind::TooMany, text))
    }

    /// One receiver; the first one if none is named.
    pub(super) fn get_config(&self, run: RunId, id: Option<&str>) -> Result<PushConfig, A2aError> {
        let mut all = self.list_configs(run).into_iter();
        let found = all.find(|config| id.is_none_or(|id| config.id == id));
        found.ok_or_else(|| no_such_push_config(id.unwrap_or_default()))
    }

    /// All receivers of a task.
    pub(super) fn list_configs(&self, run: RunId) -> Vec<PushConfig> {
        let held = self.inner.lock();
        held.iter().filter(|((of, _), _)| *of == run).map(|(_, held)| held.receiver.config.clone()).collect()
    }

    /// Nothing more is sent there. Twice is as good as once.
    pub(super) async fn delete_config(&self, run: RunId, id: &str) -> Result<(), A2aError> {
        let removed = self.inner.lock().remove(&(run, id.to_owned()));
        let Some(held) = removed else { return Ok(()) };
        held.stop.cancel();
        self.inner
            .append_fact(&PushFact::Removed { run, id: id.to_owned() }, Durability::Barrier)
            .await
            .map_err(a2a_store_error)
    }

    fn start_delivery(&self, receiver: Receiver, over: DeliveryState) {
        let delivering = over == DeliveryState::Pending && self.inner.delivers(&receiver);
        let held = ActiveReceiver {
            receiver: receiver.clone(),
            open: over == DeliveryState::Pending,
            delivering,
            stop: self.inner.stop.child_token(),
        };
        let stop = held.stop.clone();
        let before = self.inner.lock().insert((receiver.run, receiver.config.id.clone()), held);
        if let Some(before) = before {
            before.stop.cancel();
        }
        if delivering {
            self.inner.tasks.spawn(delivery::deliver_push_updates(Arc::clone(&self.inner), receiver, stop));
        }
    }
}

impl PushInner {
    async fn append_fact(&self, fact: &PushFact, sync: Durability) -> Result<(), StoreError> {
        if let PushFact::Finished { run, id } = fact
            && let Some(held) = self.lock().get_mut(&(*run, id.clone()))
        {
            held.open = false;
        }
        self.facts.append(fact, sync).await
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(RunId, String), ActiveReceiver>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Credentials go into headers: what fits none would never arrive, and each try would fail where nobody sees it.
fn check_push_config(config: &PushConfig) -> Result<(), A2aError> {
    let authentication = config.authentication.as_ref();
    let said = [
        ("token", config.token.as_deref()),
        ("authentication.scheme", authentication.map(|authentication| authentication.scheme.as_str())),
        ("authentication.credentials", authentication.and_then(|authentication| authentication.credentials.as_deref())),
    ];
    match said.into_iter().find(|(_, text)| text.is_some_and(|text| HeaderValue::from_str(text).is_err())) {
        Some((field, _)) => {
            Err(A2aError::invalid_field(field, "fits no header: it holds a line break or a control character"))
        }
        None => Ok(()),
    }
}

fn no_such_push_config(id: &str) -> A2aError {
    A2aError::new(A2aErrorKind::TaskNotFound, format!("no such push notification config: {id}"))
}
