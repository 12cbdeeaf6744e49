"""One call over gRPC in the words of JSON, with the stubs of a2a-sdk."""

import grpc
from a2a.types import a2a_pb2 as pb
from a2a.types import a2a_pb2_grpc as stubs
from google.protobuf import json_format
from google.rpc import error_details_pb2, status_pb2

STREAMS = ("SendStreamingMessage", "SubscribeToTask")
REQUESTS = {
    "SendMessage": pb.SendMessageRequest,
    "SendStreamingMessage": pb.SendMessageRequest,
    "CreateTaskPushNotificationConfig": pb.TaskPushNotificationConfig,
}


def call(url, method, params, headers):
    """Status, body and events, as the bindings that speak JSON give them."""
    request = REQUESTS.get(method) or getattr(pb, f"{method}Request")
    with grpc.insecure_channel(url.removeprefix("http://")) as channel:
        try:
            request = json_format.ParseDict(params, request())
            answer = getattr(stubs.A2AServiceStub(channel), method)(
                request, metadata=[("a2a-version", "1.0"), *((k.lower(), v) for k, v in headers.items())], timeout=60
            )
            if method not in STREAMS:
                body = json_format.MessageToDict(answer)
                if method == "ListTasks":  # an empty text is not sent, and yet it is there
                    body.setdefault("nextPageToken", answer.next_page_token)
                return 200, body, None
            events = [json_format.MessageToDict(event) for event in answer]
            return 200, events[-1] if events else None, events
        except json_format.ParseError as error:
            raise RuntimeError(f"gRPC cannot say this: {error}") from error
        except grpc.RpcError as error:
            return status_of(error), {"error": described(error)}, None


def described(error):
    """The reasons are in a trailer."""
    details = []
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    details.append({"@type": detail.type_url, "reason": info.reason, "domain": info.domain})
    return {"code": error.code().name, "message": error.details(), "data": details}


def status_of(error):
    return {"NOT_FOUND": 404, "INTERNAL": 500}.get(error.code().name, 400)
