//! Which calls of MCP servers could carry something out of the machine.

use gander_domain::ToolCall;

use super::resources;
use super::servers::Servers;

impl Servers {
    /// True if a call of one of their tools could reach out of the machine, by what is around the server and not by what
    /// it says about itself; `None` if it is none of theirs.
    pub fn reaches_out(&self, call: &ToolCall) -> Option<bool> {
        match self.find_tool(&call.name) {
            Some((server, _)) => Some(self.env.reaches_out(&server.spec)),
            None if resources::is_resource_tool(&call.name) && self.has_resources() => {
                Some(self.all_servers().iter().any(|server| self.env.reaches_out(&server.spec)))
            }
            None => None,
        }
    }
}
