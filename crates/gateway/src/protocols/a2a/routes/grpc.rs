//! The gRPC binding: the same requests and answers in other bytes, on the same port over HTTP/2.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, BufMut as _};
use futures::{Stream as Events, StreamExt as _};
use gander_http::connection_addresses::ConnectionAddresses;
use gander_http::error;
use gander_http::serve::ConnectionPermit;
use gander_http::sse_response::SsePermit;
use gander_wire::a2a::protobuf::{self, MessageType, table};
use gander_wire::a2a::{
    A2aDialect, A2aError, A2aMethod, A2aRequest, TaskSubject, TaskUpdate, json, json_rpc as json_rpc_wire,
};
use http::request::Parts;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Status};

use super::response::{a2a_response_json, a2a_whole_response_permit};
use super::{a2a_caller, requested_a2a_version};
use crate::protocols::a2a::A2aState;
use crate::protocols::a2a::{A2aAnswer, A2aCaller, TaskStream};

type Params = Map<String, Value>;

/// One call.
pub(crate) async fn handle_grpc_call(
    State(state): State<Arc<A2aState>>,
    Extension(identity): Extension<gander_domain::caller::Caller>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let method = A2aMethod::from_name(&name).filter(|(_, dialect)| *dialect == A2aDialect::V1 && state.cards.grpc());
    let Some((method, _)) = method else { return error::not_found_response(request.uri().clone()).await };
    let (parts, body) = request.into_parts();
    let call = GrpcCall { state, identity, method, parts: Arc::new(copy_grpc_request_parts(&parts)) };
    let request = http::Request::from_parts(parts, body);
    let (takes, gives) = grpc_method_types(method);
    let most = call.state.limits.prompt_body.len();
    let mut grpc = tonic::server::Grpc::new(ProtobufJsonCodec { takes, gives }).max_decoding_message_size(most);
    let response = if method.is_streaming() {
        grpc.server_streaming(
            tower::service_fn(move |request: tonic::Request<Params>| {
                let call = call.clone();
                async move { call.streaming_response(request.into_inner()).await.map(tonic::Response::new) }
            }),
            request,
        )
        .await
    } else {
        grpc.unary(
            tower::service_fn(move |request: tonic::Request<Params>| {
                let call = call.clone();
                async move { call.unary_response(request.into_inner()).await.map(tonic::Response::new) }
            }),
            request,
        )
        .await
    };
    response.map(Body::new)
}

#[derive(Clone)]
struct GrpcCall {
    state: Arc<A2aState>,
    identity: gander_domain::caller::Caller,
    method: A2aMethod,
    parts: Arc<Parts>,
}

impl GrpcCall {
    async fn unary_response(&self, params: Params) -> Result<Value, Status> {
        let caller = self.resolve_caller(&params).map_err(|error| grpc_status(&error))?;
        let answer = self.handle_request(&caller, params).await.map_err(|error| grpc_status(&error))?;
        Ok(a2a_response_json(&self.state, &caller, &self.parts, &answer).unwrap_or_else(|| json!({})))
    }

    async fn streaming_response(&self, params: Params) -> Result<UpdateStream, Status> {
        let permit = SsePermit::new(&self.state, &self.identity, &self.parts.extensions);
        let permit = permit.map_err(|_| Status::resource_exhausted("too many streams are open"))?;
        let caller = self.resolve_caller(&params).map_err(|error| grpc_status(&error))?;
        match self.handle_request(&caller, params).await.map_err(|error| grpc_status(&error))? {
            A2aAnswer::Stream(stream) => {
                let updates = grpc_update_stream(*stream, permit.stop_token());
                Ok(Box::pin(updates.inspect(move |_| {
                    let _held = &permit;
                })))
            }
            A2aAnswer::Sent(_)
            | A2aAnswer::Task(_)
            | A2aAnswer::Page(_)
            | A2aAnswer::Push(_)
            | A2aAnswer::Pushes(_)
            | A2aAnswer::Card(_)
            | A2aAnswer::Deleted => Err(Status::internal("not a stream")),
        }
    }

    fn resolve_caller(&self, params: &Params) -> Result<A2aCaller, A2aError> {
        let name = params.get("tenant").and_then(Value::as_str).unwrap_or_default();
        let agent = self.state.a2a.find_agent(name);
        let agent = agent.ok_or_else(|| A2aError::invalid_field("tenant", "no such agent here"))?;
        Ok(a2a_caller(&self.state, self.identity.clone(), agent, A2aDialect::V1, &self.parts))
    }

    async fn handle_request(&self, caller: &A2aCaller, params: Params) -> Result<A2aAnswer, A2aError> {
        let version = requested_a2a_version(&self.parts.headers, &self.parts.uri);
        if A2aDialect::from_version(&version) != Some(A2aDialect::V1) {
            return Err(json_rpc_wire::unsupported_json_rpc_version(&version));
        }
        let request = A2aRequest::from_params(self.method, A2aDialect::V1, params)?;
        let _whole = a2a_whole_response_permit(&self.state, &request).await?;
        self.state.a2a.handle_request(caller, request).await
    }
}

type UpdateStream = std::pin::Pin<Box<dyn Events<Item = Result<Value, Status>> + Send>>;

/// A task's updates, each as one message.
fn grpc_update_stream(stream: TaskStream, stop: CancellationToken) -> impl Events<Item = Result<Value, Status>> + Send {
    let subject = stream.subject().clone();
    let snapshot = stream.snapshot.clone().map(|task| TaskUpdate::Begin(Box::new(task)));
    let over = stream.snapshot.as_ref().is_some_and(|task| task.status.state.is_terminal());
    let waiting: VecDeque<Value> = snapshot.iter().map(|update| grpc_update_message(&subject, update)).collect();
    futures::stream::unfold(
        (stream, subject, waiting, over, stop),
        |(mut stream, subject, mut waiting, mut over, stop)| async move {
            while waiting.is_empty() && !over {
                let batch = tokio::select! {
                    () = stop.cancelled() => return None,
                    batch = stream.follower.next_batch() => batch,
                };
                let Ok(Some(batch)) = batch else { return None };
                for entry in batch.iter() {
                    for update in stream.watch.project_entry(entry) {
                        over |= stream.ends_with(entry.seq, &update);
                        if !matches!(update, TaskUpdate::Said(_)) {
                            waiting.push_back(grpc_update_message(&subject, &update));
                        }
                    }
                    if over {
                        break;
                    }
                }
            }
            let next = waiting.pop_front()?;
            Some((Ok(next), (stream, subject, waiting, over, stop)))
        },
    )
}

fn grpc_update_message(subject: &TaskSubject, update: &TaskUpdate<'_>) -> Value {
    json::a2a_stream_event_json_with_ids(A2aDialect::V1, subject, update)
}

/// What a method takes and gives.
fn grpc_method_types(method: A2aMethod) -> (&'static MessageType, &'static MessageType) {
    match method {
        A2aMethod::Send => (&table::SEND_MESSAGE_REQUEST, &table::SEND_MESSAGE_RESPONSE),
        A2aMethod::Stream => (&table::SEND_MESSAGE_REQUEST, &table::STREAM_RESPONSE),
        A2aMethod::Get => (&table::GET_TASK_REQUEST, &table::TASK),
        A2aMethod::List => (&table::LIST_TASKS_REQUEST, &table::LIST_TASKS_RESPONSE),
        A2aMethod::Cancel => (&table::CANCEL_TASK_REQUEST, &table::TASK),
        A2aMethod::Subscribe => (&table::SUBSCRIBE_TO_TASK_REQUEST, &table::STREAM_RESPONSE),
        A2aMethod::SetPush => (&table::TASK_PUSH_NOTIFICATION_CONFIG, &table::TASK_PUSH_NOTIFICATION_CONFIG),
        A2aMethod::GetPush => {
            (&table::GET_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST, &table::TASK_PUSH_NOTIFICATION_CONFIG)
        }
        A2aMethod::ListPush => {
            (&table::LIST_TASK_PUSH_NOTIFICATION_CONFIGS_REQUEST, &table::LIST_TASK_PUSH_NOTIFICATION_CONFIGS_RESPONSE)
        }
        A2aMethod::DeletePush => (&table::DELETE_TASK_PUSH_NOTIFICATION_CONFIG_REQUEST, &table::EMPTY),
        A2aMethod::ExtendedCard => (&table::GET_EXTENDED_AGENT_CARD_REQUEST, &table::AGENT_CARD),
    }
}

/// An error with its reason, as `google.rpc.Status` tells it.
fn grpc_status(error: &A2aError) -> Status {
    let codes = error.kind.codes();
    let info = json!({ "reason": codes.reason, "domain": "a2a-protocol.org" });
    let any = json!({
        "typeUrl": "type.googleapis.com/google.rpc.ErrorInfo",
        "value": STANDARD.encode(protobuf::write_protobuf(&table::ERROR_INFO, &info)),
    });
    let details = json!({ "code": codes.grpc, "message": error.message, "details": [any] });
    let details = protobuf::write_protobuf(&table::STATUS, &details);
    Status::with_details(Code::from_i32(i32::from(codes.grpc)), error.message.clone(), details.into())
}

/// What of a request is needed while it is answered.
fn copy_grpc_request_parts(parts: &Parts) -> Parts {
    let mut copy = http::Request::new(()).into_parts().0;
    copy.uri = parts.uri.clone();
    copy.headers = parts.headers.clone();
    if let Some(seat) = parts.extensions.get::<Arc<ConnectionPermit>>() {
        copy.extensions.insert(Arc::clone(seat));
    }
    if let Some(address) = parts.extensions.get::<ConnectionAddresses>() {
        copy.extensions.insert(*address);
    }
    copy
}

/// Protobuf outside, JSON inside.
#[derive(Clone, Copy)]
struct ProtobufJsonCodec {
    takes: &'static MessageType,
    gives: &'static MessageType,
}

impl Codec for ProtobufJsonCodec {
    type Encode = Value;
    type Decode = Params;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for ProtobufJsonCodec {
    type Item = Value;
    type Error = Status;

    fn encode(&mut self, item: Value, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&protobuf::write_protobuf(self.gives, &item));
        Ok(())
    }
}

impl Decoder for ProtobufJsonCodec {
    type Item = Params;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Params>, Status> {
        let bytes = bytes.copy_to_bytes(bytes.remaining());
        protobuf::read_protobuf(self.takes, &bytes)
            .map(Some)
            .map_err(|error| Status::invalid_argument(error.to_string()))
    }
}
