//! This server among others over one PostgreSQL database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gander_runtime::hub::{ClusterTimes, NodeRole};
use gander_services::server_vault::{ClusterKeyError, ClusterKeys};
use gander_services::units::DurationSetting;
use serde::{Deserialize, Serialize};

/// A shorter lease would be lost to a busy disk.
const MIN_LEASE: Duration = Duration::from_secs(2);

/// This server among others. Counts only where `store.url` names a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSection {
    /// What this node does.
    pub role: NodeRole,
    /// Where its local disks are; absent: the name of the machine.
    #[serde(default)]
    pub label: Option<String>,
    /// Folders that every node sees alike.
    pub shared: Vec<PathBuf>,
    /// Others take its sessions so long after its last sign of life.
    pub lease: LeaseTime,
    /// Whether nodes tell each other what is new.
    pub hints: bool,
    /// Where other nodes reach this one over HTTP.
    #[serde(default)]
    pub address: Option<String>,
    /// The key that nodes have in common; absent: secrets stay with each node.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
}

/// How long a node may be silent before others take its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "DurationSetting", into = "DurationSetting")]
pub struct LeaseTime(Duration);

impl TryFrom<DurationSetting> for LeaseTime {
    type Error = String;

    fn try_from(time: DurationSetting) -> Result<Self, String> {
        if time.0 < MIN_LEASE {
            return Err(format!("a lease lasts at least {} seconds", MIN_LEASE.as_secs()));
        }
        Ok(Self(time.0))
    }
}

impl From<LeaseTime> for DurationSetting {
    fn from(lease: LeaseTime) -> Self {
        Self(lease.0)
    }
}

impl ClusterSection {
    /// The keys that nodes have in common.
    pub fn read_keys(&self) -> Result<Option<ClusterKeys>, ClusterKeyError> {
        self.key_file.as_deref().map(ClusterKeys::read_file).transpose()
    }

    /// What the key file holds, for masking it.
    pub(crate) fn key_lines(&self) -> Vec<String> {
        let text = self.key_file.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        text.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect()
    }

    /// The name under which other nodes reach this one.
    pub fn address_host(&self) -> Option<String> {
        let address = self.address.as_deref()?;
        let authority = address.split_once("://").map_or(address, |(_, rest)| rest).split('/').next()?;
        let host = authority.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        Some(host.map_or(authority, |(host, _)| host).to_owned())
    }

    /// The label of this node's disks.
    pub fn node_label(&self) -> String {
        let machine = || rustix::system::uname().nodename().to_string_lossy().into_owned();
        self.label.clone().unwrap_or_else(machine)
    }

    /// True if every node sees this folder.
    pub fn is_shared(&self, folder: &str) -> bool {
        self.shared.iter().any(|shared| Path::new(folder).starts_with(shared))
    }

    /// A node renews four times per lease, and stops what it runs well before others may take it.
    pub fn times(&self) -> ClusterTimes {
        let take_over = self.lease.0;
        ClusterTimes { renew: take_over / 4, fence: take_over * 10 / 17, take_over, ..ClusterTimes::default() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn section(text: &str) -> Result<ClusterSection, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn a_node_stops_before_others_take_over_whatever_the_lease() {
        for lease in ["2s", "17s", "5m"] {
            let times =
                section(&format!("role = 'all'\nshared = []\nlease = '{lease}'\nhints = true")).unwrap().times();
            assert!(times.renew * 2 < times.fence && times.fence < times.take_over, "{times:?}");
        }
        let short = section("role = 'all'\nshared = []\nlease = '1s'\nhints = true").unwrap_err().to_string();
        assert!(short.contains("a lease lasts at least 2 seconds"), "{short}");
    }

    #[test]
    fn the_name_of_a_node_is_that_of_its_address() {
        for (address, host) in [
            ("http://10.0.0.5:4747", "10.0.0.5"),
            ("http://node-1", "node-1"),
            ("https://[fd00::1]:4747/", "[fd00::1]"),
        ] {
            let text = format!("role = 'all'\nshared = []\nlease = '17s'\nhints = true\naddress = '{address}'");
            assert_eq!(section(&text).unwrap().address_host().as_deref(), Some(host));
        }
    }

    #[test]
    fn a_folder_is_shared_by_its_own_parts_and_not_by_its_letters() {
        let section = section("role = 'worker'\nshared = ['/mnt/projects']\nlease = '17s'\nhints = true").unwrap();
        assert!(section.is_shared("/mnt/projects") && section.is_shared("/mnt/projects/a"));
        assert!(!section.is_shared("/mnt/projects-old") && !section.is_shared("/mnt"));
    }
}
