//! The table of requests that name ids (`tenants.txt`), read and filled in.

use reqwest::Method;
use serde_json::{Value, json};

const TABLE: &str = include_str!("tenants.txt");

/// The same for methods: a name, then its parameters.
const METHODS: &str = include_str!("methods.txt");

/// The ADK user of everybody: users are names inside a principal.
pub const USER: &str = "somebody";

/// One request about a route.
#[derive(Clone, Debug)]
pub struct Row {
    pub method: Method,
    pub route: String,
    /// None if the route takes no id, for the reason that follows.
    pub asked: Option<Template>,
    pub reason: &'static str,
}

/// A request with open places.
#[derive(Clone, Debug)]
pub struct Template {
    address: String,
    headers: Vec<(&'static str, &'static str)>,
    body: Option<&'static str>,
    /// What the answer shows to its owner; none if it is no list.
    pub shows: Option<Vec<String>>,
}

/// A request as it is sent.
#[derive(Clone, Debug)]
pub struct Filled {
    pub address: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<String>,
}

/// A place for an id, and whether its owner is answered otherwise than somebody who made it up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    pub name: String,
    pub counts: bool,
}

/// Every row, also those that only repeat another below a prefix.
pub fn rows(routes: &[String]) -> Vec<Row> {
    let stated: Vec<Row> = TABLE.lines().filter(|line| !line.starts_with('#')).map(row).collect();
    let mut all = stated.clone();
    for route in routes.iter().filter(|route| stated.iter().all(|row| row.name() != **route)) {
        let (method, path) = route.split_once(' ').unwrap();
        let prefix = ["/api", "/acp-rest"].into_iter().find(|prefix| path.starts_with(&format!("{prefix}/")));
        let Some(prefix) = prefix else { continue };
        let same = stated.iter().filter(|row| row.method == method && row.route == path[prefix.len()..]);
        all.extend(same.map(|row| row.below(prefix)));
    }
    all
}

/// Every call of the table of methods; none with a method that takes no id.
pub fn calls() -> Vec<(&'static str, Option<Template>)> {
    let call = |line: &'static str| {
        let (method, rest) = line.split_once(' ').unwrap_or_else(|| panic!("neither parameters nor a -: {line}"));
        (method, (!rest.starts_with("- ")).then(|| template("", rest)))
    };
    METHODS.lines().filter(|line| !line.starts_with('#')).map(call).collect()
}

/// A request whose body alone has places.
pub fn body(text: &'static str) -> Template {
    template("", text)
}

fn row(line: &'static str) -> Row {
    let (method, rest) = line.split_once(' ').unwrap();
    let (route, rest) = rest.split_once(' ').unwrap_or_else(|| panic!("neither an address nor a -: {line}"));
    let (address, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let asked = (address != "-").then(|| template(address, rest));
    Row { method: method.parse().unwrap(), route: route.to_owned(), asked, reason: rest }
}

fn template(address: &str, rest: &'static str) -> Template {
    let (rest, shows) = match rest.rfind('>') {
        Some(at) => (rest[..at].trim(), Some(slots(&rest[at..]).map(|slot| slot.name).collect())),
        None => (rest, None),
    };
    let split = rest.find("{\"").or_else(|| rest.find("{}")).unwrap_or(rest.len());
    let headers = rest[..split].split_whitespace().map(|header| header.split_once(':').unwrap()).collect();
    let body = Some(&rest[split..]).filter(|body| !body.is_empty());
    Template { address: address.to_owned(), headers, body, shows }
}

/// The places of a text: lower-case words in braces.
fn slots(text: &str) -> impl Iterator<Item = Slot> {
    text.split('{').skip(1).filter_map(|piece| {
        let (word, _) = piece.split_once('}')?;
        let (name, counts) = word.strip_suffix('?').map_or((word, true), |name| (name, false));
        (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()))
            .then(|| Slot { name: name.to_owned(), counts })
    })
}

impl Row {
    /// The route's line in the server's own table.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.route)
    }

    fn below(&self, prefix: &str) -> Self {
        let asked = self.asked.clone().map(|asked| Template { address: format!("{prefix}{}", asked.address), ..asked });
        Self { route: format!("{prefix}{}", self.route), asked, ..self.clone() }
    }
}

impl Template {
    pub fn slots(&self) -> Vec<Slot> {
        let headers = self.headers.iter().flat_map(|(_, value)| slots(value));
        let body = self.body.into_iter().flat_map(slots);
        let mut all: Vec<Slot> = slots(&self.address).chain(headers).chain(body).collect();
        all.sort();
        all.dedup_by(|next, before| next.name == before.name);
        all
    }

    /// True if it has a place for this.
    pub fn names(&self, slot: &str) -> bool {
        let shown = self.shows.iter().flatten().any(|shown| shown == slot);
        shown || self.slots().iter().any(|known| known.name == slot)
    }

    /// The request, with an id for every place.
    pub fn filled<'a>(&self, agent: &str, id: impl Fn(&str) -> &'a str) -> Filled {
        let fill = |text: &str| {
            let fixed = [("$agent", agent.to_owned()), ("$user", USER.to_owned())];
            let fixed = fixed.into_iter().chain(FIXED.iter().map(|(name, value)| (*name, value().to_string())));
            let text = fixed.fold(text.to_owned(), |text, (name, value)| text.replace(name, &value));
            self.slots().iter().fold(text, |text, slot| {
                let id = id(&slot.name);
                text.replace(&format!("{{{}}}", slot.name), id).replace(&format!("{{{}?}}", slot.name), id)
            })
        };
        Filled {
            address: fill(&self.address).replace(' ', "%20"),
            headers: self.headers.iter().map(|(name, value)| (*name, fill(value))).collect(),
            body: self.body.map(fill),
        }
    }
}

/// Values that bodies have in common.
type MakeValue = fn() -> Value;

const FIXED: [(&str, MakeValue); 4] = [
    ("$said", || json!({ "role": "user", "created": 1, "content": [{ "type": "text", "text": "hello" }] })),
    ("$input", || json!([{ "role": "user", "parts": [{ "content": "hello" }] }])),
    ("$answer", || json!({ "type": "message", "message": { "role": "user", "parts": [{ "content": "allow_once" }] } })),
    ("$recipe", || json!({ "version": "1.0.0", "title": "t", "description": "d", "prompt": "p" })),
];
