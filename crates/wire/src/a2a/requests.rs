//! Requests: one type for every operation, read from the JSON of either version.

use serde_json::{Map, Value};

use super::error::{A2aError, A2aErrorKind};
use super::object_reader::ObjectReader;
use super::{A2aDialect, A2aMessage, A2aPart, A2aPartContent, A2aRole, Authentication, PushConfig, TaskState};

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum A2aMethod {
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
pub enum A2aRequest {
    /// Say something, hear the outcome.
    Send(Box<SendRequest>),
    /// Say something, hear everything.
    Stream(Box<SendRequest>),
    /// Look at a task.
    Get { id: String, history: Option<usize> },
    /// Look at many.
    List(Box<ListRequest>),
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
pub struct SendRequest {
    pub message: A2aMessage,
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
pub struct ListRequest {
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
const PAGE_SIZES: (u32, u32) = (50, 100);

impl A2aMethod {
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
    pub fn from_name(name: &str) -> Option<(Self, A2aDialect)> {
        Self::NAMES.into_iter().find_map(|(method, v1, v03)| {
            if v1 == name {
                return Some((method, A2aDialect::V1));
            }
            (v03 == Some(name)).then_some((method, A2aDialect::V03))
        })
    }

    /// True if its answer is a stream.
    pub const fn is_streaming(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }
}

impl A2aRequest {
    /// Reads the parameters of a method.
    pub fn from_params(method: A2aMethod, dialect: A2aDialect, params: Map<String, Value>) -> Result<Self, A2aError> {
        let mut reader = ObjectReader::new(params);
        let request = match method {
            A2aMethod::Send => Self::Send(Box::new(read_a2a_send_request(&mut reader, dialect))),
            A2aMethod::Stream => Self::Stream(Box::new(read_a2a_send_request(&mut reader, dialect))),
            A2aMethod::Get => {
                Self::Get { id: reader.required_text("id"), history: read_a2a_history_length(&mut reader) }
            }
            A2aMethod::List => Self::List(Box::new(read_a2a_task_list_request(&mut reader))),
            A2aMethod::Cancel => Self::Cancel { id: reader.required_text("id") },
            A2aMethod::Subscribe => Self::Subscribe { id: reader.required_text("id") },
            A2aMethod::SetPush => Self::SetPush(read_a2a_set_push_config(&mut reader, dialect)),
            A2aMethod::GetPush => {
                let (task, id) = read_a2a_push_config_ref(&mut reader, dialect);
                if id.is_none() && dialect == A2aDialect::V1 {
                    reader.add_violation("id", "is required");
                }
                Self::GetPush { task, id }
            }
            A2aMethod::ListPush => Self::ListPush { task: read_a2a_task_id(&mut reader, dialect) },
            A2aMethod::DeletePush => {
                let (task, id) = read_a2a_push_config_ref(&mut reader, dialect);
                if id.is_none() {
                    reader.add_violation("id", "is required");
                }
                Self::DeletePush { task, id: id.unwrap_or_default() }
            }
            A2aMethod::ExtendedCard => Self::ExtendedCard,
        };
        reader.finish(request)
    }
}

fn read_a2a_send_request(reader: &mut ObjectReader, dialect: A2aDialect) -> SendRequest {
    let name = if dialect == A2aDialect::V03Rest { "request" } else { "message" };
    let (name, object) = match (reader.read_object(name), dialect) {
        (None, A2aDialect::V03Rest) => ("message", reader.read_object("message")),
        (object, A2aDialect::V1 | A2aDialect::V03 | A2aDialect::V03Rest) => (name, object),
    };
    let mut inner = ObjectReader::at_path(object.unwrap_or_default(), name.to_owned());
    let message = read_a2a_message(&mut inner, dialect);
    reader.absorb_violations(inner);
    let mut settings =
        ObjectReader::at_path(reader.read_object("configuration").unwrap_or_default(), "configuration".to_owned());
    let at_once = match dialect {
        A2aDialect::V1 => settings.read_boolean("returnImmediately") == Some(true),
        A2aDialect::V03 => settings.read_boolean("blocking") == Some(false),
        // In the JSON of a protobuf message nothing means false.
        A2aDialect::V03Rest => settings.read_boolean("blocking") != Some(true),
    };
    let push =
        settings.read_object("taskPushNotificationConfig").or_else(|| settings.read_object("pushNotificationConfig"));
    let push = push.or_else(|| settings.read_object("pushNotification")).map(|object| {
        let mut inner = ObjectReader::at_path(object, "configuration.taskPushNotificationConfig".to_owned());
        let config = read_a2a_push_config(&mut inner);
        settings.absorb_violations(inner);
        config
    });
    let send = SendRequest {
        message,
        at_once,
        history: read_a2a_history_length(&mut settings),
        push,
        modes: settings.read_texts("acceptedOutputModes"),
    };
    reader.absorb_violations(settings);
    send
}

fn read_a2a_message(reader: &mut ObjectReader, dialect: A2aDialect) -> A2aMessage {
    let message_id = reader.required_text("messageId");
    if message_id.len() > MAX_ID || message_id.chars().any(char::is_control) {
        reader.add_violation("messageId", format!("has at most {MAX_ID} bytes and no control characters"));
    }
    let role = reader.required_text("role");
    let role = match (role.as_str(), dialect) {
        ("ROLE_USER", _) | ("user", A2aDialect::V03 | A2aDialect::V03Rest) => A2aRole::User,
        ("ROLE_AGENT", _) | ("agent", A2aDialect::V03 | A2aDialect::V03Rest) => A2aRole::Agent,
        ("", _) => A2aRole::User, // told already
        (_, _) => {
            reader.add_violation("role", format!("no such role: {role}"));
            A2aRole::User
        }
    };
    let mut listed = reader.read_array("parts");
    if listed.is_empty() && dialect == A2aDialect::V03Rest {
        listed = reader.read_array("content");
    }
    if listed.is_empty() {
        reader.add_violation("parts", "must hold at least one part");
    }
    let parts = listed.into_iter().enumerate().filter_map(|(index, value)| {
        let path = reader.field_path(&format!("parts[{index}]"));
        let Value::Object(object) = value else {
            reader.add_violation("parts", "must hold objects");
            return None;
        };
        let mut inner = ObjectReader::at_path(object, path);
        let part = read_a2a_part(&mut inner, dialect);
        reader.absorb_violations(inner);
        part
    });
    A2aMessage {
        parts: parts.collect(),
        message_id,
        role,
        context_id: reader.non_empty_text("contextId"),
        task_id: reader.non_empty_text("taskId"),
        metadata: reader.read_object("metadata"),
        extensions: reader.read_texts("extensions"),
        reference_task_ids: reader.read_texts("referenceTaskIds"),
    }
}

fn read_a2a_part(reader: &mut ObjectReader, dialect: A2aDialect) -> Option<A2aPart> {
    let (mut filename, mut media_type) = (reader.non_empty_text("filename"), reader.non_empty_text("mediaType"));
    let metadata = reader.read_object("metadata");
    let mut found: Vec<A2aPartContent> = Vec::new();
    if dialect != A2aDialect::V1
        && let Some(file) = reader.read_object("file")
    {
        let mut inner = ObjectReader::at_path(file, reader.field_path("file"));
        filename = filename.or_else(|| inner.non_empty_text("name"));
        media_type = media_type.or_else(|| inner.non_empty_text("mimeType"));
        found.extend(inner.read_text("bytes").or_else(|| inner.read_text("fileWithBytes")).map(A2aPartContent::Raw));
        found.extend(inner.read_text("uri").or_else(|| inner.read_text("fileWithUri")).map(A2aPartContent::Url));
        reader.absorb_violations(inner);
    }
    found.extend(reader.read_text("text").map(A2aPartContent::Text));
    found.extend(reader.read_text("raw").map(A2aPartContent::Raw));
    found.extend(reader.read_text("url").map(A2aPartContent::Url));
    found.extend(reader.take_field("data").map(|data| A2aPartContent::Data(unwrap_a2a_v03_data(data, dialect))));
    if found.len() != 1 {
        reader.add_violation("", "must have exactly one of text, raw, url and data");
        return None;
    }
    let content = found.pop()?;
    Some(A2aPart { content, metadata, filename, media_type })
}

/// The protobuf of 0.3 has a message of one field around the data.
fn unwrap_a2a_v03_data(data: Value, dialect: A2aDialect) -> Value {
    match (dialect, data) {
        (A2aDialect::V03Rest, Value::Object(mut object)) if object.len() == 1 && object.contains_key("data") => {
            object.remove("data").unwrap_or_default()
        }
        (_, data) => data,
    }
}

fn read_a2a_history_length(reader: &mut ObjectReader) -> Option<usize> {
    let length = reader.read_integer("historyLength")?;
    if length < 0 {
        reader.add_violation("historyLength", "must not be negative");
    }
    usize::try_from(length).ok()
}

fn read_a2a_task_list_request(reader: &mut ObjectReader) -> ListRequest {
    let page_size = match reader.read_integer("pageSize") {
        None => PAGE_SIZES.0,
        Some(size) => u32::try_from(size).ok().filter(|size| (1..=PAGE_SIZES.1).contains(size)).unwrap_or_else(|| {
            reader.add_violation("pageSize", format!("must be from 1 to {}", PAGE_SIZES.1));
            PAGE_SIZES.0
        }),
    };
    let state = reader.non_empty_text("status").and_then(|name| {
        let unspecified = name == "TASK_STATE_UNSPECIFIED";
        let state = TaskState::parse(&name).filter(|_| name.starts_with("TASK_STATE_"));
        if state.is_none() && !unspecified {
            reader.add_violation("status", format!("no such state: {name}"));
        }
        state
    });
    let since = reader.non_empty_text("statusTimestampAfter").and_then(|text| {
        let time = text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond);
        if time.is_none() {
            reader.add_violation("statusTimestampAfter", "must be a time such as 2026-01-31T12:00:00Z");
        }
        time
    });
    ListRequest {
        context: reader.non_empty_text("contextId"),
        state,
        page_size,
        page_token: reader.non_empty_text("pageToken"),
        history: read_a2a_history_length(reader),
        since,
        artifacts: reader.read_boolean("includeArtifacts") == Some(true),
    }
}

fn read_a2a_task_id(reader: &mut ObjectReader, dialect: A2aDialect) -> String {
    match dialect {
        A2aDialect::V1 => reader.required_text("taskId"),
        A2aDialect::V03 => reader.required_text("id"),
        A2aDialect::V03Rest => reader.non_empty_text("taskId").unwrap_or_else(|| {
            let parent = reader.required_text("parent");
            parent.strip_prefix("tasks/").unwrap_or(&parent).to_owned()
        }),
    }
}

fn read_a2a_push_config_ref(reader: &mut ObjectReader, dialect: A2aDialect) -> (String, Option<String>) {
    let task = read_a2a_task_id(reader, dialect);
    let id = match dialect {
        A2aDialect::V1 | A2aDialect::V03Rest => reader.non_empty_text("id"),
        A2aDialect::V03 => reader.non_empty_text("pushNotificationConfigId"),
    };
    (task, id)
}

fn read_a2a_set_push_config(reader: &mut ObjectReader, dialect: A2aDialect) -> PushConfig {
    if dialect == A2aDialect::V1 {
        let task_id = reader.required_text("taskId");
        return PushConfig { task_id, ..read_a2a_push_config(reader) };
    }
    let task = match reader.non_empty_text("taskId") {
        Some(task) => task,
        None => read_a2a_task_id(reader, dialect),
    };
    let named = reader.non_empty_text("configId");
    let outer = reader.read_object("config").map(|object| ObjectReader::at_path(object, "config".to_owned()));
    let object = match outer {
        Some(mut outer) => {
            let inner = outer.read_object("pushNotificationConfig");
            reader.absorb_violations(outer);
            inner
        }
        None => reader.read_object("pushNotificationConfig"),
    };
    let mut inner = ObjectReader::at_path(object.unwrap_or_default(), "pushNotificationConfig".to_owned());
    let mut config = read_a2a_push_config(&mut inner);
    reader.absorb_violations(inner);
    config.task_id = task;
    if let (true, Some(named)) = (config.id.is_empty(), named) {
        config.id = named;
    }
    config
}

fn read_a2a_push_config(reader: &mut ObjectReader) -> PushConfig {
    let authentication = reader.read_object("authentication").map(|object| {
        let mut inner = ObjectReader::at_path(object, reader.field_path("authentication"));
        let scheme = inner.non_empty_text("scheme").or_else(|| inner.read_texts("schemes").into_iter().next());
        let credentials = inner.non_empty_text("credentials");
        reader.absorb_violations(inner);
        Authentication { scheme: scheme.unwrap_or_else(|| "Bearer".to_owned()), credentials }
    });
    PushConfig {
        id: reader.read_text("id").unwrap_or_default(),
        task_id: reader.read_text("taskId").unwrap_or_default(),
        url: reader.required_text("url"),
        token: reader.non_empty_text("token"),
        authentication,
    }
}

/// The method does not exist in any version.
pub fn a2a_method_not_found(name: &str) -> A2aError {
    A2aError::new(A2aErrorKind::MethodNotFound, format!("method not found: {name}"))
}
