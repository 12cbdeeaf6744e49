//! Names and numbers of the fields of A2A 1.0, as far as we say or understand them.

use super::{Count, Field, Kind, Type};

const STATES: &[&str] = &[
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];
const ROLES: &[&str] = &["ROLE_UNSPECIFIED", "ROLE_USER", "ROLE_AGENT"];

/// `SendMessageConfiguration`.
pub const SEND_MESSAGE_CONFIGURATION: Type = Type(&[
    many("acceptedOutputModes", 1, Kind::Text),
    one("taskPushNotificationConfig", 2, Kind::Message(&TASK_PUSH_NOTIFICATION_CONFIG)),
    one("historyLength", 3, Kind::Integer),
    one("returnImmediately", 4, Kind::Boolean),
]);

/// `Task`.
pub const TASK: Type = Type(&[
    one("id", 1, Kind::Text),
    one("contextId", 2, Kind::Text),
    one("status", 3, Kind::Message(&TASK_STATUS)),
    many("artifacts", 4, Kind::Message(&ARTIFACT)),
    many("history", 5, Kind::Message(&MESSAGE)),
    one("metadata", 6, Kind::Struct),
]);

/// `TaskStatus`.
pub const TASK_STATUS: Type = Type(&[
    one("state", 1, Kind::Name(STATES)),
    one("message", 2, Kind::Message(&MESSAGE)),
    one("timestamp", 3, Kind::Time),
]);

/// `Part`.
pub const PART: Type = Type(&[
    one("text", 1, Kind::Text),
    one("raw", 2, Kind::Bytes),
    one("url", 3, Kind::Text),
    one("data", 4, Kind::Value),
    one("metadata", 5, Kind::Struct),
    one("filename", 6, Kind::Text),
    one("mediaType", 7, Kind::Text),
]);

/// `Message`.
pub const MESSAGE: Type = Type(&[
    one("messageId", 1, Kind::Text),
    one("contextId", 2, Kind::Text),
    one("taskId", 3, Kind::Text),
    one("role", 4, Kind::Name(ROLES)),
    many("parts", 5, Kind::Message(&PART)),
    one("metadata", 6, Kind::Struct),
    many("extensions", 7, Kind::Text),
    many("referenceTaskIds", 8, Kind::Text),
]);

/// `Artifact`.
pub const ARTIFACT: Type = Type(&[
    one("artifactId", 1, Kind::Text),
    one("name", 2, Kind::Text),
    one("description", 3, Kind::Text),
    many("parts", 4, Kind::Message(&PART)),
    one("metadata", 5, Kind::Struct),
    many("extensions", 6, Kind::Text),
]);

/// `TaskStatusUpdateEvent`.
pub const TASK_STATUS_UPDATE_EVENT: Type = Type(&[
    one("taskId", 1, Kind::Text),
    one("contextId", 2, Kind::Text),
    one("status", 3, Kind::Message(&TASK_STATUS)),
    one("metadata", 4, Kind::Struct),
]);

/// `TaskArtifactUpdateEvent`.
pub const TASK_ARTIFACT_UPDATE_EVENT: Type = Type(&[
    one("taskId", 1, Kind::Text),
    one("contextId", 2, Kind::Text),
    one("artifact", 3, Kind::Message(&ARTIFACT)),
    one("append", 4, Kind::Boolean),
    one("lastChunk", 5, Kind::Boolean),
    one("metadata", 6, Kind::Struct),
]);

/// `AuthenticationInfo`.
pub const AUTHENTICATION_INFO: Type = Type(&[one("scheme", 1, Kind::Text), one("credentials", 2, Kind::Text)]);

/// `AgentInterface`.
pub const AGENT_INTERFACE: Type = Type(&[
    one("url", 1, Kind::Text),
    one("protocolBinding", 2, Kind::Text),
    one("tenant", 3, Kind::Text),
    one("protocolVersion", 4, Kind::Text),
]);

/// `AgentCard`.
pub const AGENT_CARD: Type = Type(&[
    one("name", 1, Kind::Text),
    one("description", 2, Kind::Text),
    many("supportedInterfaces", 3, Kind::Message(&AGENT_INTERFACE)),
    one("provider", 4, Kind::Message(&AGENT_PROVIDER)),
    one("version", 5, Kind::Text),
    one("documentationUrl", 6, Kind::Text),
    one("capabilities", 7, Kind::Message(&AGENT_CAPABILITIES)),
    map("securitySchemes", 8, Kind::Message(&SECURITY_SCHEME)),
    many("securityRequirements", 9, Kind::Message(&SECURITY_REQUIREMENT)),
    many("defaultInputModes", 10, Kind::Text),
    many("defaultOutputModes", 11, Kind::Text),
    many("skills", 12, Kind::Message(&AGENT_SKILL)),
    many("signatures", 13, Kind::Message(&AGENT_CARD_SIGNATURE)),
    one("iconUrl", 14, Kind::Text),
]);

/// `AgentProvider`.
pub const AGENT_PROVIDER: Type = Type(&[one("url", 1, Kind::Text), one("organization", 2, Kind::Text)]);

/// `AgentCapabilities`.
pub const AGENT_CAPABILITIES: Type = Type(&[
    one("streaming", 1, Kind::Boolean),
    one("pushNotifications", 2, Kind::Boolean),
    many("extensions", 3, Kind::Message(&AGENT_EXTENSION)),
    one("extendedAgentCard", 4, Kind::Boolean),
]);

/// `AgentExtension`.
pub const AGENT_EXTENSION: Type = Type(&[
    one("uri", 1, Kind::Text),
    one("description", 2, Kind::Text),
    one("required", 3, Kind::Boolean),
    one("params", 4, Kind::Struct),
]);

/// `AgentSkill`.
pub const AGENT_SKILL: Type = Type(&[
    one("id", 1, Kind::Text),
    one("name", 2, Kind::Text),
    one("description", 3, Kind::Text),
    many("tags", 4, Kind::Text),
    many("examples", 5, Kind::Text),
    many("inputModes", 6, Kind::Text),
    many("outputModes", 7, Kind::Text),
    many("securityRequirements", 8, Kind::Message(&SECURITY_REQUIREMENT)),
]);

/// `AgentCardSignature`.
pub const AGENT_CARD_SIGNATURE: Type =
    Type(&[one("protected", 1, Kind::Text), one("signature", 2, Kind::Text), one("header", 3, Kind::Struct)]);

/// `TaskPushNotificationConfig`.
pub const TASK_PUSH_NOTIFICATION_CONFIG: Type = Type(&[
    one("tenant", 1, Kind::Text),
    one("id", 2, Kind::Text),
    one("taskId", 3, Kind::Text),
    one("url", 4, Kind::Text),
    one("token", 5, Kind::Text),
    one("authentication", 6, Kind::Message(&AUTHENTICATION_INFO)),
]);

/// `StringList`.
pub const STRING_LIST: Type = Type(&[many("list", 1, Kind::Text)]);

/// `SecurityRequirement`.
pub const SECURITY_REQUIREMENT: Type = Type(&[map("schemes", 1, Kind::Message(&STRING_LIST))]);

/// `SecurityScheme`.
pub const SECURITY_SCHEME: Type = Type(&[one("httpAuthSecurityScheme", 2, Kind::Message(&HTTP_AUTH_SECURITY_SCHEME))]);

/// `HTTPAuthSecurityScheme`.
pub const HTTP_AUTH_SECURITY_SCHEME: Type =
    Type(&[one("description", 1, Kind::Text), one("scheme", 2, Kind::Text), one("bearerFormat", 3, Kind::Text)]);

/// `SendMessageRequest`.
pub const SEND_MESSAGE_REQUEST: Type = Type(&[
    one("tenant", 1, Kind::Text),
    one("message", 2, Kind::Message(&MESSAGE)),
    one("configuration", 3, Kind::Message(&SEND_MESSAGE_CONFIGURATION)),
    one("metadata", 4, Kind::Struct),
]);

/// `GetTaskRequest`.
pub const GET_TASK_REQUEST: Type =
    Type(&[one("tenant", 1, Kind::Text), one("id", 2, Kind::Text), one("historyLength", 3, Kind::Integer)]);

/// `ListTasksRequest`.
pub const LIST_TASKS_REQUEST: Type = Type(&[
    one("tenant", 1, Kind::Text),
    one("contextId", 2, Kind::Text),
    one("status", 3, Kind::Name(STATES)),
    one("pageSize", 4, Kind::Integer),
    one("pageToken", 5, Kind::Text),
    one("historyLength", 6, Kind::Integer),
    one("statusTimestampAfter", 7, Kind::Time),
    one("includeArtifacts", 8, Kind::Boolean),
]);

/// `ListTasksResponse`.
pub const LIST_TASKS_RESPONSE: Type = Type(&[
    many("tasks", 1, Kind::Message(&TASK)),
    one("nextPageToken", 2, Kind::Text),
    one("pageSize", 3, Kind::Integer),
    one("totalSize", 4, Kind::Integer),
]);

/// `CancelTaskRequest`.
pub const CANCEL_TASK_REQUEST: Type =
    Type(&[one("tenant", 1, Kind::Text), one("id", 2, Kind::Text), one("metadata", 3, Kind::Struct)]);

/// `GetTaskPushNotificationConfigRequest`.
pub const GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: Type =
    Type(&[one("tenant", 1, Kind::Text), one("taskId", 2, Kind::Text), one("id", 3, Kind::Text)]);

/// `DeleteTaskPushNotificationConfigRequest`.
pub const DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: Type =
    Type(&[one("tenant", 1, Kind::Text), one("taskId", 2, Kind::Text), one("id", 3, Kind::Text)]);

/// `SubscribeToTaskRequest`.
pub const SUBSCRIBE_TO_TASK_REQUEST: Type = Type(&[one("tenant", 1, Kind::Text), one("id", 2, Kind::Text)]);

/// `ListTaskPushNotificationConfigsRequest`.
pub const LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST: Type = Type(&[
    one("tenant", 4, Kind::Text),
    one("taskId", 1, Kind::Text),
    one("pageSize", 2, Kind::Integer),
    one("pageToken", 3, Kind::Text),
]);

/// `GetExtendedAgentCardRequest`.
pub const GET_EXTENDED_AGENT_CARD_REQUEST: Type = Type(&[one("tenant", 1, Kind::Text)]);

/// `SendMessageResponse`.
pub const SEND_MESSAGE_RESPONSE: Type =
    Type(&[one("task", 1, Kind::Message(&TASK)), one("message", 2, Kind::Message(&MESSAGE))]);

/// `StreamResponse`.
pub const STREAM_RESPONSE: Type = Type(&[
    one("task", 1, Kind::Message(&TASK)),
    one("message", 2, Kind::Message(&MESSAGE)),
    one("statusUpdate", 3, Kind::Message(&TASK_STATUS_UPDATE_EVENT)),
    one("artifactUpdate", 4, Kind::Message(&TASK_ARTIFACT_UPDATE_EVENT)),
]);

/// `ListTaskPushNotificationConfigsResponse`.
pub const LIST_TASK_PUSH_NOTIFICATION_CONFIGS_RESPONSE: Type =
    Type(&[many("configs", 1, Kind::Message(&TASK_PUSH_NOTIFICATION_CONFIG)), one("nextPageToken", 2, Kind::Text)]);

/// `google.rpc.Status`.
pub const STATUS: Type =
    Type(&[one("code", 1, Kind::Integer), one("message", 2, Kind::Text), many("details", 3, Kind::Message(&ANY))]);

/// `google.protobuf.Any`.
pub const ANY: Type = Type(&[one("typeUrl", 1, Kind::Text), one("value", 2, Kind::Bytes)]);

/// `google.rpc.ErrorInfo`, without the metadata that we never send.
pub const ERROR_INFO: Type = Type(&[one("reason", 1, Kind::Text), one("domain", 2, Kind::Text)]);

/// `google.protobuf.Empty`.
pub const EMPTY: Type = Type(&[]);

const fn one(name: &'static str, number: u32, kind: Kind) -> Field {
    Field { name, number, kind, count: Count::One }
}

const fn many(name: &'static str, number: u32, kind: Kind) -> Field {
    Field { name, number, kind, count: Count::Many }
}

const fn map(name: &'static str, number: u32, kind: Kind) -> Field {
    Field { name, number, kind, count: Count::Map }
}
