//! Files of agents and modes, read into what they mean.

use std::sync::Arc;

use gander_domain::Policy;
use gander_domain::roster::is_valid_roster_name;
use gander_tools::Group;

use super::{AgentSpec, Category, ModeSpec};
use crate::front_matter::{FieldValue, FrontMatter, parse_strict_front_matter};

/// A file longer than this says too much.
const MAX_FILE_BYTES: usize = 64 << 10;

/// One file: `<agent>/agent.md`, `<agent>/<mode>.md`, or `<agent>.md` for an agent of one mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeFile {
    /// Its path from the folder of agents, with `/` between.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// A file that is not used, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}, in {path}")]
pub struct BadFile {
    pub path: String,
    pub reason: String,
}

/// What a file describes.
pub(super) enum ParsedFile {
    /// An agent. Its modes are in other files.
    Agent(AgentSpec),
    /// A mode of an agent.
    Mode(ModeSpec),
    /// An agent with its only mode.
    Whole(AgentSpec),
}

/// Reads one file.
pub(super) fn parse_mode_file(page: &ModeFile) -> Result<ParsedFile, BadFile> {
    parse_mode_file_description(page).map_err(|reason| BadFile { path: page.path.clone(), reason })
}

fn parse_mode_file_description(page: &ModeFile) -> Result<ParsedFile, String> {
    if page.text.len() > MAX_FILE_BYTES {
        return Err(format!("the file has more than {MAX_FILE_BYTES} bytes"));
    }
    let path = page.path.strip_suffix(".md").ok_or("the file does not end in .md")?;
    let front = parse_strict_front_matter(&page.text)?;
    match path.split_once('/') {
        Some((agent, "agent")) => mode_file_agent_spec(check_mode_file_name(agent)?, front).map(ParsedFile::Agent),
        Some((agent, id)) => parse_mode_in_mode_file(check_mode_file_name(agent)?, check_mode_file_name(id)?, front)
            .map(ParsedFile::Mode),
        None => {
            let mode = parse_mode_in_mode_file(check_mode_file_name(path)?, "default", front)?;
            let (name, title) = (mode.agent.clone(), mode.name.clone());
            let description = mode.description.clone();
            let (default, aliases, tags) = (None, Vec::new(), Vec::new());
            Ok(ParsedFile::Whole(AgentSpec {
                name,
                title,
                description,
                default,
                aliases,
                tags,
                modes: vec![Arc::new(mode)],
            }))
        }
    }
}

fn check_mode_file_name(name: &str) -> Result<&str, String> {
    let is_free = name != "auto";
    let wrong = || format!("a name has lower-case letters, digits, - and _, and is not auto: {name}");
    (is_valid_roster_name(name) && is_free).then_some(name).ok_or_else(wrong)
}

fn mode_file_agent_spec(name: &str, front: FrontMatter<'_>) -> Result<AgentSpec, String> {
    let mut fields = ModeFileFields(front);
    let spec = AgentSpec {
        title: fields.take_text("title")?.unwrap_or_else(|| name.to_owned()),
        description: fields.take_text("description")?.unwrap_or_default(),
        default: fields.take_text("default")?,
        aliases: fields.take_list("aliases")?,
        tags: fields.take_list("tags")?,
        modes: Vec::new(),
        name: name.to_owned(),
    };
    spec.aliases.iter().try_for_each(|alias| check_mode_file_name(alias).map(drop))?;
    fields.check_none_left().map(|()| spec)
}

fn parse_mode_in_mode_file(agent: &str, id: &str, front: FrontMatter<'_>) -> Result<ModeSpec, String> {
    let mut fields = ModeFileFields(front);
    let shown = if id == "default" { agent } else { id };
    let category =
        fields.take_text("category")?.map_or(Ok(Category::Session), |text| parse_mode_file_category(&text))?;
    let groups = match fields.0.values.contains_key("tools") {
        true => fields.take_list("tools")?.iter().map(|name| parse_mode_file_group(name)).collect::<Result<_, _>>()?,
        false => mode_file_default_groups(category),
    };
    let spec = ModeSpec {
        agent: agent.to_owned(),
        id: id.to_owned(),
        name: fields.take_text("title")?.unwrap_or_else(|| shown.to_owned()),
        description: fields.take_text("description")?.unwrap_or_default(),
        category,
        groups,
        policy: fields.take_text("policy")?.map_or(Ok(Policy::Auto), |text| parse_mode_file_policy(&text))?,
        model: fields.take_text("model")?,
        then: fields.take_text("then")?,
        words: fields.take_list("words")?.iter().map(|word| word.to_lowercase()).collect(),
        instructions: fields.0.body.trim().to_owned(),
    };
    // Files that other agents read name themselves and their tools in ways of their own.
    fields.check_none_left()?;
    check_mode_in_mode_file(&spec)?;
    if spec.instructions.is_empty() { Err("there are no instructions".to_owned()) } else { Ok(spec) }
}

/// No tools where none belong.
fn check_mode_in_mode_file(mode: &ModeSpec) -> Result<(), String> {
    let wrong = |group: &&Group| match mode.category {
        Category::Session => false,
        Category::PromptOnly => !group.only_reads(),
        Category::LlmOnly => !matches!(group, Group::Apps | Group::Artifacts),
    };
    match mode.groups.iter().find(wrong) {
        None => Ok(()),
        Some(group) => {
            let name = Group::NAMES.iter().find(|(_, known)| known == group).map_or("", |(name, _)| name);
            Err(format!("these tools do not belong to a mode of its category: {name}"))
        }
    }
}

fn mode_file_default_groups(category: Category) -> Vec<Group> {
    match category {
        Category::Session => vec![Group::All],
        Category::PromptOnly => vec![Group::Look],
        Category::LlmOnly => Vec::new(),
    }
}

fn parse_mode_file_category(text: &str) -> Result<Category, String> {
    match text {
        "session" => Ok(Category::Session),
        "prompt_only" => Ok(Category::PromptOnly),
        "llm_only" => Ok(Category::LlmOnly),
        _ => Err(format!("category must be session, prompt_only or llm_only: {text}")),
    }
}

fn parse_mode_file_policy(text: &str) -> Result<Policy, String> {
    let value = serde_json::Value::String(text.to_owned());
    serde_json::from_value(value).map_err(|_| format!("policy must be read_only, ask, auto_edit or auto: {text}"))
}

fn parse_mode_file_group(name: &str) -> Result<Group, String> {
    let known = || Group::NAMES.map(|(name, _)| name).join(", ");
    Group::from_name(name).ok_or_else(|| format!("no such tool group (there are: {}): {name}", known()))
}

/// Front matter that is taken out field by field, so that what is left over is a mistake.
struct ModeFileFields<'a>(FrontMatter<'a>);

impl ModeFileFields<'_> {
    fn take_text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.0.values.remove(key) {
            None => Ok(None),
            Some(FieldValue::Text(text)) => Ok(Some(text)),
            Some(FieldValue::List(items)) if items.is_empty() => Ok(None),
            Some(FieldValue::List(_)) => Err(format!("must be one value, not a list: {key}")),
        }
    }

    fn take_list(&mut self, key: &str) -> Result<Vec<String>, String> {
        match self.0.values.remove(key) {
            None => Ok(Vec::new()),
            Some(FieldValue::Text(text)) => Ok(text.split(',').map(|item| item.trim().to_owned()).collect()),
            Some(FieldValue::List(items)) => Ok(items),
        }
    }

    fn check_none_left(&self) -> Result<(), String> {
        match self.0.values.keys().next() {
            None => Ok(()),
            Some(key) => Err(format!("no such field: {key}")),
        }
    }
}
