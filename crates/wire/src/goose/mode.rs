//! goose's modes: they say what may run unasked, which here is a session's policy.

use gander_domain::Policy;

/// Every mode with the policy it stands for and a word for people.
pub const MODES: [(&str, Policy, &str); 4] = [
    ("auto", Policy::Auto, "Everything runs, except what a rule denies or asks for"),
    ("approve", Policy::Ask, "Looking is free, everything else asks"),
    ("smart_approve", Policy::AutoEdit, "Looking and editing in the workspace are free, the rest asks"),
    ("chat", Policy::ReadOnly, "Only looking; everything else is refused"),
];

/// The policy that a mode stands for.
pub fn policy_of_goose_mode(mode: &str) -> Option<Policy> {
    MODES.iter().find(|(name, ..)| *name == mode).map(|(_, policy, _)| *policy)
}

/// The mode that a policy is shown as.
pub fn goose_mode_of_policy(policy: Policy) -> &'static str {
    match policy {
        Policy::Auto => "auto",
        Policy::Ask => "approve",
        Policy::AutoEdit => "smart_approve",
        Policy::ReadOnly => "chat",
    }
}
