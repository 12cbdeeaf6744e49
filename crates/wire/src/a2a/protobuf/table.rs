//! Names and numbers of the fields of A2A 1.0, as far as we say or understand them.

use super::{FieldCount, FieldKind, MessageField, MessageType};

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
pub const SEND_MESSAGE_CONFIGURATION: MessageType = MessageType(&[
    repeated_table_field("acceptedOutputModes", 1, FieldKind::Text),
    single_table_field("taskPushNotificationConfig", 2, FieldKind::Message(&TASK_PUSH_NOTIFICATION_CONFIG)),
    single_table_field("historyLength", 3, FieldKind::Integer),
    single_table_field("returnImmediately", 4, FieldKind::Boolean),
]);

/// `Task`.
pub const TASK: MessageType = MessageType(&[
    single_table_field("id", 1, FieldKind::Text),
    single_table_field("contextId", 2, FieldKind::Text),
    single_table_field("status", 3, FieldKind::Message(&TASK_STATUS)),
    repeated_table_field("artifacts", 4, FieldKind::Message(&ARTIFACT)),
    repeated_table_field("history", 5, FieldKind::Message(&MESSAGE)),
    single_table_field("metadata", 6, FieldKind::Struct),
]);

/// `TaskStatus`.
pub const TASK_STATUS: MessageType = MessageType(&[
    single_table_field("state", 1, FieldKind::Name(STATES)),
    single_table_field("message", 2, FieldKind::Message(&MESSAGE)),
    single_table_field("timestamp", 3, FieldKind::Time),
]);

/// `Part`.
pub const PART: MessageType = MessageType(&[
    single_table_field("text", 1, FieldKind::Text),
    single_table_field("raw", 2, FieldKind::Bytes),
    single_table_field("url", 3, FieldKind::Text),
    single_table_field("data", 4, FieldKind::Value),
    single_table_field("metadata", 5, FieldKind::Struct),
    single_table_field("filename", 6, FieldKind::Text),
    single_table_field("mediaType", 7, FieldKind::Text),
]);

/// `Message`.
pub const MESSAGE: MessageType = MessageType(&[
    single_table_field("messageId", 1, FieldKind::Text),
    single_table_field("contextId", 2, FieldKind::Text),
    single_table_field("taskId", 3, FieldKind::Text),
    single_table_field("role", 4, FieldKind::Name(ROLES)),
    repeated_table_field("parts", 5, FieldKind::Message(&PART)),
    single_table_field("metadata", 6, FieldKind::Struct),
    repeated_table_field("extensions", 7, FieldKind::Text),
    repeated_table_field("referenceTaskIds", 8, FieldKind::Text),
]);

/// `Artifact`.
pub const ARTIFACT: MessageType = MessageType(&[
    single_table_field("artifactId", 1, FieldKind::Text),
    single_table_field("name", 2, FieldKind::Text),
    single_table_field("description", 3, FieldKind::Text),
    repeated_table_field("parts", 4, FieldKind::Message(&PART)),
    single_table_field("metadata", 5, FieldKind::Struct),
    repeated_table_field("extensions", 6, FieldKind::Text),
]);

/// `TaskStatusUpdateEvent`.
pub const TASK_STATUS_UPDATE_EVENT: MessageType = MessageType(&[
    single_table_field("taskId", 1, FieldKind::Text),
    single_table_field("contextId", 2, FieldKind::Text),
    single_table_field("status", 3, FieldKind::Message(&TASK_STATUS)),
    single_table_field("metadata", 4, FieldKind::Struct),
]);

/// `TaskArtifactUpdateEvent`.
pub const TASK_ARTIFACT_UPDATE_EVENT: MessageType = MessageType(&[
    single_table_field("taskId", 1, FieldKind::Text),
    single_table_field("contextId", 2, FieldKind::Text),
    single_table_field("artifact", 3, FieldKind::Message(&ARTIFACT)),
    single_table_field("append", 4, FieldKind::Boolean),
    single_table_field("lastChunk", 5, FieldKind::Boolean),
    single_table_field("metadata", 6, FieldKind::Struct),
]);

/// `AuthenticationInfo`.
pub const AUTHENTICATION_INFO: MessageType = MessageType(&[
    single_table_field("scheme", 1, FieldKind::Text),
    single_table_field("credentials", 2, FieldKind::Text),
]);

/// `AgentInterface`.
pub const AGENT_INTERFACE: MessageType = MessageType(&[
    single_table_field("url", 1, FieldKind::Text),
    single_table_field("protocolBinding", 2, FieldKind::Text),
    single_table_field("tenant", 3, FieldKind::Text),
    single_table_field("protocolVersion", 4, FieldKind::Text),
]);

/// `AgentCard`.
pub const AGENT_CARD: MessageType = MessageType(&[
    single_table_field("name", 1, FieldKind::Text),
    single_table_field("description", 2, FieldKind::Text),
    repeated_table_field("supportedInterfaces", 3, FieldKind::Message(&AGENT_INTERFACE)),
    single_table_field("provider", 4, FieldKind::Message(&AGENT_PROVIDER)),
    single_table_field("version", 5, FieldKind::Text),
    single_table_field("documentationUrl", 6, FieldKind::Text),
    single_table_field("capabilities", 7, FieldKind::Message(&AGENT_CAPABILITIES)),
    map_table_field("securitySchemes", 8, FieldKind::Message(&SECURITY_SCHEME)),
    repeated_table_field("securityRequirements", 9, FieldKind::Message(&SECURITY_REQUIREMENT)),
    repeated_table_field("defaultInputModes", 10, FieldKind::Text),
    repeated_table_field("defaultOutputModes", 11, FieldKind::Text),
    repeated_table_field("skills", 12, FieldKind::Message(&AGENT_SKILL)),
    repeated_table_field("signatures", 13, FieldKind::Message(&AGENT_CARD_SIGNATURE)),
    single_table_field("iconUrl", 14, FieldKind::Text),
]);

/// `AgentProvider`.
pub const AGENT_PROVIDER: MessageType = MessageType(&[
    single_table_field("url", 1, FieldKind::Text),
    single_table_field("organization", 2, FieldKind::Text),
]);

/// `AgentCapabilities`.
pub const AGENT_CAPABILITIES: MessageType = MessageType(&[
    single_table_field("streaming", 1, FieldKind::Boolean),
    single_table_field("pushNotifications", 2, FieldKind::Boolean),
    repeated_table_field("extensions", 3, FieldKind::Message(&AGENT_EXTENSION)),
    single_table_field("extendedAgentCard", 4, FieldKind::Boolean),
]);

/// `AgentExtension`.
pub const AGENT_EXTENSION: MessageType = MessageType(&[
    single_table_field("uri", 1, FieldKind::Text),
    single_table_field("description", 2, FieldKind::Text),
    single_table_field("required", 3, FieldKind::Boolean),
    single_table_field("params", 4, FieldKind::Struct),
]);

/// `AgentSkill`.
pub const AGENT_SKILL: MessageType = MessageType(&[
    single_table_field("id", 1, FieldKind::Text),
    single_table_field("name", 2, FieldKind::Text),
    single_table_field("description", 3, FieldKind::Text),
    repeated_table_field("tags", 4, FieldKind::Text),
    repeated_table_field("examples", 5, FieldKind::Text),
    repeated_table_field("inputModes", 6, FieldKind::Text),
    repeated_table_field("outputModes", 7, FieldKind::Text),
    repeated_table_field("securityRequirements", 8, FieldKind::Message(&SECURITY_REQUIREMENT)),
]);

/// `AgentCardSignature`.
pub const AGENT_CARD_SIGNATURE: MessageType = MessageType(&[
    single_table_field("protected", 1, FieldKind::Text),
    single_table_field("signature", 2, FieldKind::Text),
    single_table_field("header", 3, FieldKind::Struct),
]);

/// `TaskPushNotificationConfig`.
pub const TASK_PUSH_NOTIFICATION_CONFIG: MessageType = MessageType(&[
    single_table_field("tenant", 1, FieldKind::Text),
    single_table_field("id", 2, FieldKind::Text),
    single_table_field("taskId", 3, FieldKind::Text),
    single_table_field("url", 4, FieldKind::Text),
    single_table_field("token", 5, FieldKind::Text),
    single_table_field("authentication", 6, FieldKind::Message(&AUTHENTICATION_INFO)),
]);

/// `StringList`.
pub const STRING_LIST: MessageType = MessageType(&[repeated_table_field("list", 1, FieldKind::Text)]);

/// `SecurityRequirement`.
pub const SECURITY_REQUIREMENT: MessageType =
    MessageType(&[map_table_field("schemes", 1, FieldKind::Message(&STRING_LIST))]);

/// `SecurityScheme`.
pub const SECURITY_SCHEME: MessageType =
    MessageType(&[single_table_field("httpAuthSecurityScheme", 2, FieldKind::Message(&HTTP_AUTH_SECURITY_SCHEME))]);

/// `HTTPAuthSecurityScheme`.
pub const HTTP_AUTH_SECURITY_SCHEME: MessageType = MessageType(&[
    single_table_field("description", 1, FieldKind::Text),
    single_table_field("scheme", 2, FieldKind::Text),
    single_table_field("bearerFormat", 3, FieldKind::Text),
]);

/// `SendMessageRequest`.
pub const SEND_MESSAGE_REQUEST: MessageType = MessageType(&[
    single_table_field("tenant", 1, FieldKind::Text),
    single_table_field("message", 2, FieldKind::Message(&MESSAGE)),
    single_table_field("configuration", 3, FieldKind::Message(&SEND_MESSAGE_CONFIGURATION)),
    single_table_field("metadata", 4, FieldKind::Struct),
]);

/// `GetTaskRequest`.
pub const GET_TASK_REQUEST: MessageType = MessageType(&[
    single_table_field("tenant", 1, FieldKind::Text),
    single_table_field("id", 2, FieldKind::Text),
    single_table_field("historyLength", 3, FieldKind::Integer),
]);

/// `ListTasksRequest`.
pub const LIST_TASKS_REQUEST: MessageType = MessageType(&[
    single_table_field("tenant", 1, FieldKind::Text),
    single_table_field("contextId", 2, FieldKind::Text),
    single_table_field("status", 3, FieldKind::Name(STATES)),
    single_table_field("pageSize", 4, FieldKind::Integer),
    single_table_field("pageToken", 5, FieldKind::Text),
    single_table_field("historyLength", 6, FieldKind::Integer),
    single_table_field("statusTimestampAfter", 7, FieldKind::Time),
    single_table_field("includeArtifacts", 8, FieldKind::Boolean),
]);

/// `ListTasksResponse`.
pub const LIST_TASKS_RESPONSE: MessageType = MessageType(&[
    repeated_table_field("tasks", 1, FieldKind::Message(&TASK)),
    single_table_field("nextPageToken", 2, FieldKind::Text),
    single_table_field("pageSize", 3, FieldKind::Integer),
    single_table_field("totalSize", 4, FieldKind::Integer),
]);

/// `CancelTaskRequest`.
pub const CANCEL_TASK_REQUEST: MessageType = MessageType(&[
    single_table_field("tenant", 1, FieldKind::Text),
    single_table_field("id", 2, FieldKind::Text),
    single_table_field("metadata", 3, FieldKind::Struct),
]);

/// `GetTaskPushNotificationConfigRequest`.
pub const GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: MessageType = MessageType(&[
    single_table_field("tenant", 1, FieldKind::Text),
    single_table_field("taskId", 2, FieldKind::Text),
    single_table_field("id", 3, FieldKind::Text),
]);

/// `DeleteTaskPushNotificationConfigRequest`.
pub const DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST: MessageType = MessageType(&[
    single_table_field("tenant", 1, FieldKind::Text),
    single_table_field("taskId", 2, FieldKind::Text),
    single_table_field("id", 3, FieldKind::Text),
]);

/// `SubscribeToTaskRequest`.
pub const SUBSCRIBE_TO_TASK_REQUEST: MessageType =
    MessageType(&[single_table_field("tenant", 1, FieldKind::Text), single_table_field("id", 2, FieldKind::Text)]);

/// `ListTaskPushNotificationConfigsRequest`.
pub const LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST: MessageType = MessageType(&[
    single_table_field("tenant", 4, FieldKind::Text),
    single_table_field("taskId", 1, FieldKind::Text),
    single_table_field("pageSize", 2, FieldKind::Integer),
    single_table_field("pageToken", 3, FieldKind::Text),
]);

/// `GetExtendedAgentCardRequest`.
pub const GET_EXTENDED_AGENT_CARD_REQUEST: MessageType =
    MessageType(&[single_table_field("tenant", 1, FieldKind::Text)]);

/// `SendMessageResponse`.
pub const SEND_MESSAGE_RESPONSE: MessageType = MessageType(&[
    single_table_field("task", 1, FieldKind::Message(&TASK)),
    single_table_field("message", 2, FieldKind::Message(&MESSAGE)),
]);

/// `StreamResponse`.
pub const STREAM_RESPONSE: MessageType = MessageType(&[
    single_table_field("task", 1, FieldKind::Message(&TASK)),
    single_table_field("message", 2, FieldKind::Message(&MESSAGE)),
    single_table_field("statusUpdate", 3, FieldKind::Message(&TASK_STATUS_UPDATE_EVENT)),
    single_table_field("artifactUpdate", 4, FieldKind::Message(&TASK_ARTIFACT_UPDATE_EVENT)),
]);

/// `ListTaskPushNotificationConfigsResponse`.
pub const LIST_TASK_PUSH_NOTIFICATION_CONFIGS_RESPONSE: MessageType = MessageType(&[
    repeated_table_field("configs", 1, FieldKind::Message(&TASK_PUSH_NOTIFICATION_CONFIG)),
    single_table_field("nextPageToken", 2, FieldKind::Text),
]);

/// `google.rpc.Status`.
pub const STATUS: MessageType = MessageType(&[
    single_table_field("code", 1, FieldKind::Integer),
    single_table_field("message", 2, FieldKind::Text),
    repeated_table_field("details", 3, FieldKind::Message(&ANY)),
]);

/// `google.protobuf.Any`.
pub const ANY: MessageType =
    MessageType(&[single_table_field("typeUrl", 1, FieldKind::Text), single_table_field("value", 2, FieldKind::Bytes)]);

/// `google.rpc.ErrorInfo`, without the metadata that we never send.
pub const ERROR_INFO: MessageType =
    MessageType(&[single_table_field("reason", 1, FieldKind::Text), single_table_field("domain", 2, FieldKind::Text)]);

/// `google.protobuf.Empty`.
pub const EMPTY: MessageType = MessageType(&[]);

const fn single_table_field(name: &'static str, number: u32, kind: FieldKind) -> MessageField {
    MessageField { name, number, kind, count: FieldCount::One }
}

const fn repeated_table_field(name: &'static str, number: u32, kind: FieldKind) -> MessageField {
    MessageField { name, number, kind, count: FieldCount::Many }
}

const fn map_table_field(name: &'static str, number: u32, kind: FieldKind) -> MessageField {
    MessageField { name, number, kind, count: FieldCount::Map }
}
