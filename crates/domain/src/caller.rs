//! Who calls: made by the guard of a transport, carried unchanged to the operation, which decides with it.
//!
//! What a caller may do is decided in [`crate::authorize`] and nowhere else.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Principal;
use crate::trace::TraceContext;

/// Who calls, with what authority, and from where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Whose sessions, grants and settings the call is about.
    pub principal: Principal,
    /// What its credential is good for.
    pub scopes: Scopes,
    /// The only ADK user whose sessions are seen, if there is one.
    pub adk_user: Option<String>,
    /// The only folders, besides private ones, that its sessions may work in, if its credential says so. They count
    /// below the server's own roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<Vec<String>>,
    /// In which protocol it asks.
    pub protocol: Protocol,
    /// How its bytes reach the server.
    pub transport: Transport,
    /// The span of the request, if requests are traced. A prompt keeps it for its run, and so it is stored nowhere else.
    #[serde(skip)]
    pub trace: Option<TraceContext>,
}

/// A set of [`Scope`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

/// In which protocol somebody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// The Agent Client Protocol.
    Acp,
    /// The Agent Communication Protocol.
    AcpRest,
    /// goose's REST API.
    Goose,
    /// The Agent Development Kit's REST API.
    Adk,
    /// Agent to Agent.
    A2a,
    /// Routes of our own.
    Gander,
    /// The server itself, on behalf of a principal: sub-agents and schedules.
    Internal,
}

/// How somebody's bytes reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Standard input and output, or the Unix socket with its checked user id.
    Local,
    /// TCP on this machine, with no sign of a proxy that forwards for others.
    Loopback,
    /// TCP from elsewhere, or through a proxy.
    Network,
}

/// What a token is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look at one's own sessions. Every token may.
    Read,
    /// Start sessions and runs.
    Prompt,
    /// Answer questions.
    Approve,
    /// See and change what belongs to the server.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Read, Self::Prompt, Self::Approve, Self::Admin];

    /// Its name, as it stands in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Prompt => "prompt",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }

    /// One line for people.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Read => "Read its own sessions (every token may)",
            Self::Prompt => "Start sessions and runs",
            Self::Approve => "Answer questions",
            Self::Admin => "Read and change what belongs to the server",
        }
    }

    /// The scope of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who a token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub principal: Principal,
    /// What may be done.
    pub scopes: BTreeSet<Scope>,
    /// The only ADK user whose sessions are seen, if there is one.
    pub adk_user: Option<String>,
    /// The only folders that its sessions may work in, if the credential says so.
    pub roots: Option<Vec<String>>,
}

impl Identity {
    /// The one who started the server: may do everything.
    pub fn owner() -> Self {
        let scopes = [Scope::Read, Scope::Prompt, Scope::Approve, Scope::Admin].into();
        Self { principal: Principal::owner(), scopes, adk_user: None, roots: None }
    }
}

impl Caller {
    /// The person who started this process, over stdio or the Unix socket: may do everything.
    pub fn local_owner() -> Self {
        Self::local(Principal::owner())
    }

    /// Somebody on stdio or the Unix socket with every scope.
    pub fn local(principal: Principal) -> Self {
        let (scopes, protocol, transport) = (Scopes::ALL, Protocol::Acp, Transport::Local);
        Self { principal, scopes, adk_user: None, roots: None, protocol, transport, trace: None }
    }

    /// The server itself, going on with what this principal began.
    ///
    /// It has every scope because what it carries out was authorised when the principal asked for it. It counts as
    /// remote: nothing that runs later or below may name programs.
    pub fn internal(principal: Principal) -> Self {
        Self {
            principal,
            scopes: Scopes::ALL,
            adk_user: None,
            roots: None,
            protocol: Protocol::Internal,
            transport: Transport::Network,
            trace: None,
        }
    }

    /// Somebody with a token.
    pub fn with_token(identity: Identity, protocol: Protocol, transport: Transport) -> Self {
        let Identity { principal, scopes, adk_user, roots } = identity;
        Self { principal, scopes: scopes.into_iter().collect(), adk_user, roots, protocol, transport, trace: None }
    }

    /// This caller without any authority, for connections whose requests each bring their own.
    #[must_use]
    pub fn without_scopes(self) -> Self {
        Self { scopes: Scopes::default(), ..self }
    }

    /// True if the caller's credential has this scope.
    pub fn has_scope(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }

    /// True if the caller runs on the machine that the server runs on.
    pub fn is_same_machine(&self) -> bool {
        self.transport.is_same_machine()
    }

    /// True if the caller is the one who started the server.
    pub fn is_owner(&self) -> bool {
        self.principal == Principal::owner()
    }
}

impl Transport {
    /// True if it does not leave the machine.
    pub fn is_same_machine(self) -> bool {
        match self {
            Self::Local | Self::Loopback => true,
            Self::Network => false,
        }
    }
}

impl Scopes {
    /// Every scope.
    pub const ALL: Self = Self(0b1111);

    /// True if the scope is in the set.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & Self::bit(scope) != 0
    }

    fn bit(scope: Scope) -> u8 {
        match scope {
            Scope::Read => 1,
            Scope::Prompt => 2,
            Scope::Approve => 4,
            Scope::Admin => 8,
        }
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(Scope::ALL.into_iter().filter(|scope| self.contains(*scope)))
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Scope>::deserialize(deserializer).map(|scopes| scopes.into_iter().collect())
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | Self::bit(scope)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set: Scopes = [Scope::Read, Scope::Approve].into_iter().collect();
        let all = [Scope::Read, Scope::Prompt, Scope::Approve, Scope::Admin];
        assert_eq!(all.map(|scope| set.contains(scope)), [true, false, true, false]);
        assert_eq!(all.into_iter().collect::<Scopes>(), Scopes::ALL);
    }
}
