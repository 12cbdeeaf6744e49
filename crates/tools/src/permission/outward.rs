//! Calls that would carry something out while private data and untrusted text are both in the agent's context.
//!
//! Whoever wrote the untrusted text may be the one who wants the call: the model is no boundary. So what was allowed
//! beforehand (the policy, a rule, a grant) does not count for such a call, unless it was allowed with this in view.

use gander_domain::{OutwardCall, Provenance, ToolCall, sanitize};
use reqwest::Url;

use super::decide_effect::CallEffect;
use super::{CallContext, Rule, permission_call_fingerprint};

/// Where a tool that is none of ours could carry something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlet {
    /// Nowhere: the sandbox around it has no network.
    None,
    /// Out of the machine.
    Network,
    /// Into what later sessions are told.
    Memory,
}

/// What the call would carry out and why nobody agreed to that beforehand; none if it stays here or somebody did.
pub(super) fn find_outward_call(
    effect: &CallEffect,
    allowing: &[&Rule],
    call: &ToolCall,
    context: &CallContext,
) -> Option<OutwardCall> {
    let provenance = &context.provenance;
    let destination = outward_destination(effect, call, context)?;
    let untrusted = provenance.untrusted()?;
    let reason = match context.outlet {
        Outlet::Memory => format!("Asked because later sessions would be told text that may come from {untrusted}."),
        Outlet::None | Outlet::Network => {
            let private = provenance.private()?;
            format!(
                "Asked because this call reaches out while the agent has read private data ({private}) and text from \
                 outside ({untrusted}), which may have told it to."
            )
        }
    };
    let allowed = provenance.is_allowed(&destination)
        || allowing.iter().any(|rule| rule.even_untrusted)
        || is_outward_named_by_person(effect, provenance);
    (!allowed).then(|| OutwardCall { destination, reason: sanitize::sanitized_line(&reason) })
}

/// What "for the rest of this session" covers, in words.
pub(super) fn outward_destination_name(call: &ToolCall, context: &CallContext) -> String {
    match CallEffect::from_call(call, context) {
        CallEffect::Network { origin, .. } => format!("fetching from {}", sanitize::sanitized_line(&origin)),
        CallEffect::Exec { .. } => "exactly this command".to_owned(),
        CallEffect::Unknown { tool, .. } => format!("every call of the tool {}", sanitize::sanitized_line(&tool)),
        CallEffect::Read { .. } | CallEffect::Internal | CallEffect::StoreWrite | CallEffect::FileWrite { .. } => {
            "exactly this call".to_owned()
        }
    }
}

/// Where the call would carry something; none if it stays in the machine.
fn outward_destination(effect: &CallEffect, call: &ToolCall, context: &CallContext) -> Option<String> {
    match effect {
        CallEffect::Network { origin, .. } => Some(format!("fetch {origin}")),
        CallEffect::Exec { network, .. } => {
            let reaches_out = network.is_some() || !(context.isolated || effect.only_looks(context));
            reaches_out.then(|| format!("command {}", permission_call_fingerprint(call)))
        }
        CallEffect::Unknown { tool, .. } => (context.outlet != Outlet::None).then(|| format!("tool {tool}")),
        CallEffect::Read { .. } | CallEffect::Internal | CallEffect::StoreWrite | CallEffect::FileWrite { .. } => None,
    }
}

/// An address that a person wrote, letter for letter, carries nothing but what the person wrote.
fn is_outward_named_by_person(effect: &CallEffect, provenance: &Provenance) -> bool {
    let CallEffect::Network { url, .. } = effect else { return false };
    provenance.named_urls().filter_map(|named| Url::parse(named).ok()).any(|named| named.as_str() == url)
}
