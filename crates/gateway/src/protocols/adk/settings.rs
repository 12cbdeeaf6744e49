//! The settings of ADK.

use std::path::PathBuf;

use gander_services::units::DurationSetting;
use serde::{Deserialize, Serialize};

/// ADK.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdkSection {
    /// Under which user sessions of other protocols are seen.
    pub user: String,
    /// What happens to a run whose client leaves.
    pub on_leave: OnLeave,
    /// Pieces that come within this time are sent as one.
    pub join: DurationSetting,
    /// The folder of an installed web page.
    #[serde(default)]
    pub ui: Option<PathBuf>,
    /// As adk2goose did: a first run makes its session, and a turn's last event says that it is over. No setting.
    #[serde(skip)]
    pub like_adk2goose: bool,
    /// The user who sees the sessions that goose has of its own, behind `gander proxy adk`. No setting.
    #[serde(skip)]
    pub goose_sessions: Option<String>,
}

/// What happens to a run whose client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLeave {
    /// It goes on.
    Continue,
    /// It is cancelled.
    Cancel,
}
