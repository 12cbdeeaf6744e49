//! The tables of every protocol together, as their description reads them.

use gander_domain::caller::Protocol;

use crate::route::RouteRule;

/// Every route, and every protocol as its tag.
pub type RouteTables = (&'static [RouteRule], &'static [(Protocol, ProtocolAbout)]);

/// A protocol as the description of all routes presents it.
#[derive(Clone, Copy, Debug)]
pub struct ProtocolAbout {
    /// A word for programs.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// Where it is described; `None` for our own routes, which we describe ourselves.
    pub official: Option<&'static str>,
}
