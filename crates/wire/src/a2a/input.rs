//! Requests: one type for every operation, read from the JSON of either version.

use serde_json::{Map, Value};

use super::error::{Error, Kind};
use super::object_reader::Reader;
use super::{Authentication, Content, Dialect, Message, Part, PushConfig, Role, TaskState};

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Say something, hear the outcome.
    Send,
    /// Say something, hear everything.
    Stream,
    /// Look at a task.
    Get,
    /// Look at many.
    List,
    /// Stop one.
    Cancel,
    /// Hear everything from now on.
    Subscribe,
    /// Have updates sent.
    SetPush,
    /// Look at where they are sent.
    GetPush,
    /// Look at all of these.
    ListPush,
    /// No longer.
    DeletePush,
    /// The card for those who are known.
    ExtendedCard,
}

/// A request, understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Say something, hear the outcome.
    Send(Box<Send>),
    /// Say something, hear everything.
    Stream(Box<Send>),
    /// Look at a task.
    Get { id: String, history: Option<usize> },
    /// Look at many.
    List(Box<List>),
    /// Stop one.
    Cancel { id: String },
    /// Hear everything from now on.
    Subscribe { id: String },
    /// Have updates sent.
    SetPush(PushConfig),
    /// Look at where they are sent. 0.3 may leave out which.
    GetPush { task: String, id: Option<String> },
    /// Look at all of these.
    ListPush { task: String },
    /// No longer.
    DeletePush { task: String, id: String },
    /// The card for those who are known.
    ExtendedCard,
}

/// Something said.
#[derive(Clone, Debug, PartialEq)]
pub struct Send {
    /// What.
    pub message: Message,
    /// The answer need not wait for the outcome.
    pub at_once: bool,
    /// How much history the answer shows.
    pub history: Option<usize>,
    /// Where updates are sent.
    pub push: Option<PushConfig>,
    /// Types that the client reads; none: any.
    pub modes: Vec<String>,
}

/// Which tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Of this context.
    pub context: Option<String>,
    /// In this state.
    pub state: Option<TaskState>,
    /// How many at once.
    pub page_size: u32,
    /// After this page.
    pub page_token: Option<String>,
    /// How much history each shows.
    pub history: Option<usize>,
    /// Whose status is not older, in microseconds since 1970.
    pub since: Option<i64>,
    /// Show what they made?
    pub artifacts: bool,
}

/// A longer id is no client's: ids are kept and told again.
const MAX_ID: usize = 256;

/// How many tasks a page holds unless asked otherwise, and at most.
const PAGE: (u32, u32) = (50, 100);

impl Method {
    /// Every method with its names in 1.0 and 0.3.
    pub const NAMES: [(Self, &'static str, Option<&'static str>); 11] = [
        (Self::Send, "SendMessage", Some("message/send")),
        (Self::Stream, "SendStreamingMessage", Some("message/stream")),
        (Self::Get, "GetTask", Some("tasks/get")),
        (Self::List, "ListTasks", None),
        (Self::Cancel, "CancelTask", Some("tasks/cancel")),
        (Self::Subscribe, "SubscribeToTask", Some("tasks/resubscribe")),
        (Self::SetPush, "CreateTaskPushNotificationConfig", Some("tasks/pushNotificationConfig/set")),
        (Self::GetPush, "GetTaskPushNotificationConfig", Some("tasks/pushNotificationConfig/get")),
        (Self::ListPush, "ListTaskPushNotificationConfigs", Some("tasks/pushNotificationConfig/list")),
        (Self::DeletePush, "DeleteTaskPushNotificationConfig", Some("tasks/pushNotificationConfig/delete")),
        (Self::ExtendedCard, "GetExtendedAgentCard", Some("agent/getAuthenticatedExtendedCard")),
    ];

    /// The method of this name, and the version whose name it is.
    pub fn named(name: &str) -> Option<(Self, Dialect)> {
        Self::NAMES.into_iter().find_map(|(method, v1, v03)| {
            if v1 == name {
                return Some((method, Dialect::V1));
            }
            (v03 == Some(name)).then_some((method, Dialect::V03))
        })
    }

    /// True if its answer is a stream.
    pub const fn streams(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }
}

impl Request {
    /// Reads the parameters of a method.
    pub fn read(method: Method, dialect: Dialect, params: Map<String, Value>) -> Result<Self, Error> {
        let mut reader = Reader::new(params);
        let request = match method {
            Method::Send => Self::Send(Box::new(send(&mut reader, dialect))),
            Method::Stream => Self::Stream(Box::new(send(&mut reader, dialect))),
            Method::Get => Self::Get { id: reader.required("id"), history: history(&mut reader) },
            Method::List => Self::List(Box::new(list(&mut reader))),
            Method::Cancel => Self::Cancel { id: reader.required("id") },
            Method::Subscribe => Self::Subscribe { id: reader.required("id") },
            Method::SetPush => Self::SetPush(set_push(&mut reader, dialect)),
            Method::GetPush => {
                let (task, id) = config_ref(&mut reader, dialect);
                if id.is_none() && dialect == Dialect::V1 {
                    reader.complain("id", "is required");
                }
                Self::GetPush { task, id }
            }
            Method::ListPush => Self::ListPush { task: task_of(&mut reader, dialect) },
            Method::DeletePush => {
                let (task, id) = config_ref(&mut reader, dialect);
                if id.is_none() {
                    reader.complain("id", "is required");
                }
                Self::DeletePush { task, id: id.unwrap_or_default() }
            }
            Method::ExtendedCard => Self::ExtendedCard,
        };
        reader.finish(request)
    }
}

fn send(reader: &mut Reader, dialect: Dialect) -> Send {
    let name = if dialect == Dialect::V03Rest { "request" } else { "message" };
    let (name, object) = match (reader.object(name), dialect) {
        (None, Dialect::V03Rest) => ("message", reader.object("message")),
        (object, Dialect::V1 | Dialect::V03 | Dialect::V03Rest) => (name, object),
    };
    let mut inner = Reader::at(object.unwrap_or_default(), name.to_owned());
    let message = message(&mut inner, dialect);
    reader.absorb(inner);
    let mut settings = Reader::at(reader.object("configuration").unwrap_or_default(), "configuration".to_owned());
    let at_once = match dialect {
        Dialect::V1 => settings.boolean("returnImmediately") == Some(true),
        Dialect::V03 => settings.boolean("blocking") == Some(false),
        // In the JSON of a protobuf message nothing means false.
        Dialect::V03Rest => settings.boolean("blocking") != Some(true),
    };
    let push = settings.object("taskPushNotificationConfig").or_else(|| settings.object("pushNotificationConfig"));
    let push = push.or_else(|| settings.object("pushNotification")).map(|object| {
        let mut inner = Reader::at(object, "configuration.taskPushNotificationConfig".to_owned());
        let config = config(&mut inner);
        settings.absorb(inner);
        config
    });
    let send =
        Send { message, at_once, history: history(&mut settings), push, modes: settings.texts("acceptedOutputModes") };
    reader.absorb(settings);
    send
}

fn message(reader: &mut Reader, dialect: Dialect) -> Message {
    let message_id = reader.required("messageId");
    if message_id.len() > MAX_ID || message_id.chars().any(char::is_control) {
        reader.complain("messageId", format!("has at most {MAX_ID} bytes and no control characters"));
    }
    let role = reader.required("role");
    let role = match (role.as_str(), dialect) {
        ("ROLE_USER", _) | ("user", Dialect::V03 | Dialect::V03Rest) => Role::User,
        ("ROLE_AGENT", _) | ("agent", Dialect::V03 | Dialect::V03Rest) => Role::Agent,
        ("", _) => Role::User, // told already
        (_, _) => {
            reader.complain("role", format!("no such role: {role}"));
            Role::User
        }
    };
    let mut listed = reader.array("parts");
    if listed.is_empty() && dialect == Dialect::V03Rest {
        listed = reader.array("content");
    }
    if listed.is_empty() {
        reader.complain("parts", "must hold at least one part");
    }
    let parts = listed.into_iter().enumerate().filter_map(|(index, value)| {
        let place = reader.place(&format!("parts[{index}]"));
        let Value::Object(object) = value else {
            reader.complain("parts", "must hold objects");
            return None;
        };
        let mut inner = Reader::at(object, place);
        let part = part(&mut inner, dialect);
        reader.absorb(inner);
        part
    });
    Message {
        parts: parts.collect(),
        message_id,
        role,
        context_id: reader.filled("contextId"),
        task_id: reader.filled("taskId"),
        metadata: reader.object("metadata"),
        extensions: reader.texts("extensions"),
        reference_task_ids: reader.texts("referenceTaskIds"),
    }
}

fn part(reader: &mut Reader, dialect: Dialect) -> Option<Part> {
    let (mut filename, mut media_type) = (reader.filled("filename"), reader.filled("mediaType"));
    let metadata = reader.object("metadata");
    let mut found: Vec<Content> = Vec::new();
    if dialect != Dialect::V1
        && let Some(file) = reader.object("file")
    {
        let mut inner = Reader::at(file, reader.place("file"));
        filename = filename.or_else(|| inner.filled("name"));
        media_type = media_type.or_else(|| inner.filled("mimeType"));
        found.extend(inner.text("bytes").or_else(|| inner.text("fileWithBytes")).map(Content::Raw));
        found.extend(inner.text("uri").or_else(|| inner.text("fileWithUri")).map(Content::Url));
        reader.absorb(inner);
    }
    found.extend(reader.text("text").map(Content::Text));
    found.extend(reader.text("raw").map(Content::Raw));
    found.extend(reader.text("url").map(Content::Url));
    found.extend(reader.take("data").map(|data| Content::Data(unwrapped(data, dialect))));
    if found.len() != 1 {
        reader.complain("", "must have exactly one of text, raw, url and data");
        return None;
    }
    let content = found.pop()?;
    Some(Part { content, metadata, filename, media_type })
}

/// The protobuf of 0.3 has a message of one field around the data.
fn unwrapped(data: Value, dialect: Dialect) -> Value {
    match (dialect, data) {
        (Dialect::V03Rest, Value::Object(mut object)) if object.len() == 1 && object.contains_key("data") => {
            object.remove("data").unwrap_or_default()
        }
        (_, data) => data,
    }
}

fn history(reader: &mut Reader) -> Option<usize> {
    let length = reader.integer("historyLength")?;
    if length < 0 {
        reader.complain("historyLength", "must not be negative");
    }
    usize::try_from(length).ok()
}

fn list(reader: &mut Reader) -> List {
    let page_size = match reader.integer("pageSize") {
        None => PAGE.0,
        Some(size) => u32::try_from(size).ok().filter(|size| (1..=PAGE.1).contains(size)).unwrap_or_else(|| {
            reader.complain("pageSize", format!("must be from 1 to {}", PAGE.1));
            PAGE.0
        }),
    };
    let state = reader.filled("status").and_then(|name| {
        let unspecified = name == "TASK_STATE_UNSPECIFIED";
        let state = TaskState::parse(&name).filter(|_| name.starts_with("TASK_STATE_"));
        if state.is_none() && !unspecified {
            reader.complain("status", format!("no such state: {name}"));
        }
        state
    });
    let since = reader.filled("statusTimestampAfter").and_then(|text| {
        let time = text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond);
        if time.is_none() {
            reader.complain("statusTimestampAfter", "must be a time such as 2026-01-31T12:00:00Z");
        }
        time
    });
    List {
        context: reader.filled("contextId"),
        state,
        page_size,
        page_token: reader.filled("pageToken"),
        history: history(reader),
        since,
        artifacts: reader.boolean("includeArtifacts") == Some(true),
    }
}

fn task_of(reader: &mut Reader, dialect: Dialect) -> String {
    match dialect {
        Dialect::V1 => reader.required("taskId"),
        Dialect::V03 => reader.required("id"),
        Dialect::V03Rest => reader.filled("taskId").unwrap_or_else(|| {
            let parent = reader.required("parent");
            parent.strip_prefix("tasks/").unwrap_or(&parent).to_owned()
        }),
    }
}

fn config_ref(reader: &mut Reader, dialect: Dialect) -> (String, Option<String>) {
    let task = task_of(reader, dialect);
    let id = match dialect {
        Dialect::V1 | Dialect::V03Rest => reader.filled("id"),
        Dialect::V03 => reader.filled("pushNotificationConfigId"),
    };
    (task, id)
}

fn set_push(reader: &mut Reader, dialect: Dialect) -> PushConfig {
    if dialect == Dialect::V1 {
        let task_id = reader.required("taskId");
        return PushConfig { task_id, ..config(reader) };
    }
    let task = match reader.filled("taskId") {
        Some(task) => task,
        None => task_of(reader, dialect),
    };
    let named = reader.filled("configId");
    let outer = reader.object("config").map(|object| Reader::at(object, "config".to_owned()));
    let object = match outer {
        Some(mut outer) => {
            let inner = outer.object("pushNotificationConfig");
            reader.absorb(outer);
            inner
        }
        None => reader.object("pushNotificationConfig"),
    };
    let mut inner = Reader::at(object.unwrap_or_default(), "pushNotificationConfig".to_owned());
    let mut config = config(&mut inner);
    reader.absorb(inner);
    config.task_id = task;
    if let (true, Some(named)) = (config.id.is_empty(), named) {
        config.id = named;
    }
    config
}

fn config(reader: &mut Reader) -> PushConfig {
    let authentication = reader.object("authentication").map(|object| {
        let mut inner = Reader::at(object, reader.place("authentication"));
        let scheme = inner.filled("scheme").or_else(|| inner.texts("schemes").into_iter().next());
        let credentials = inner.filled("credentials");
        reader.absorb(inner);
        Authentication { scheme: scheme.unwrap_or_else(|| "Bearer".to_owned()), credentials }
    });
    PushConfig {
        id: reader.text("id").unwrap_or_default(),
        task_id: reader.text("taskId").unwrap_or_default(),
        url: reader.required("url"),
        token: reader.filled("token"),
        authentication,
    }
}

/// The method does not exist in any version.
pub fn no_method(name: &str) -> Error {
    Error::new(Kind::MethodNotFound, format!("method not found: {name}"))
}
