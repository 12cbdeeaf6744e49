"""Drives gander with a2a-sdk (PyPI): every operation in every binding of 1.0, and 0.3 over both of its JSON bindings.

The SDK reads from the card how to show a token, and sends one that was made for it, to prompt and to answer with.
"""

import asyncio
import sys
import uuid

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig
from a2a.client.auth.credentials import CredentialService
from a2a.client.auth.interceptor import AuthInterceptor
from a2a.client.client_factory import ClientFactory
from a2a.types import a2a_pb2 as pb

import gander_server

GANDER = sys.argv[1]


class Token(CredentialService):
    def __init__(self, token):
        self.token = token

    async def get_credentials(self, scheme, context):
        return self.token


def message(prefix, text="hello", **more):
    return pb.Message(message_id=f"{prefix}-{uuid.uuid4()}", role=pb.ROLE_USER, parts=[pb.Part(text=text)], **more)


async def client(server, binding, version, streaming=True, token=None):
    config = ClientConfig(
        streaming=streaming,
        supported_protocol_bindings=[binding],
        httpx_client=httpx.AsyncClient(timeout=60, trust_env=False),
        grpc_channel_factory=lambda address: grpc.aio.insecure_channel(address),
    )
    card = await A2ACardResolver(config.httpx_client, server.url).get_agent_card()
    wanted = [i for i in card.supported_interfaces if i.protocol_binding == binding and i.protocol_version == version]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(wanted)
    return ClientFactory(config).create(card, interceptors=[AuthInterceptor(Token(token or server.client_token))])


async def tell(client, said, **settings):
    request = pb.SendMessageRequest(message=said, configuration=pb.SendMessageConfiguration(**settings))
    return [event async for event in client.send_message(request)]


def last_state(events):
    states = [e.status_update.status.state for e in events if e.HasField("status_update")]
    states += [e.task.status.state for e in events if e.HasField("task") and len(events) == 1]
    return states[-1] if states else None


def text(events):
    return "".join(p.text for e in events if e.HasField("artifact_update") for p in e.artifact_update.artifact.parts)


async def streams(server, binding, version):
    c = await client(server, binding, version)
    events = await tell(c, message("tck-stream-001"))
    assert events[0].HasField("task"), events[0]
    assert text(events) == "Stream hello from TCK", text(events)
    assert last_state(events) == pb.TASK_STATE_COMPLETED


async def sends(server, binding, version):
    c = await client(server, binding, version, streaming=False)
    events = await tell(c, message("tck-artifact-text"))
    assert events[-1].task.artifacts[0].parts[0].text == "Generated text content", events
    task = await c.get_task(pb.GetTaskRequest(id=events[-1].task.id))
    assert task.status.state == pb.TASK_STATE_COMPLETED


async def answers(server, binding, version):
    c = await client(server, binding, version, streaming=False)
    asked = (await tell(c, message("tck-input-required")))[-1].task
    assert asked.status.state == pb.TASK_STATE_INPUT_REQUIRED, asked
    done = (await tell(c, message("m", "blue", task_id=asked.id, context_id=asked.context_id)))[-1].task
    assert done.status.state == pb.TASK_STATE_COMPLETED, done
    assert done.status.message.parts[0].text == "Heard: blue", done


async def cancels_and_subscribes(server, binding, version):
    c = await client(server, binding, version, streaming=False)
    task = (await tell(c, message("tck-long-running"), return_immediately=True))[-1].task

    watcher = await client(server, binding, version)

    async def watch():
        return [event async for event in watcher.subscribe(pb.SubscribeToTaskRequest(id=task.id))]

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0.5)
    cancelled = await c.cancel_task(pb.CancelTaskRequest(id=task.id))
    assert cancelled.status.state == pb.TASK_STATE_CANCELED, cancelled
    events = await asyncio.wait_for(watching, 30)
    assert last_state(events) == pb.TASK_STATE_CANCELED, events


async def lists(server, binding, version):
    c = await client(server, binding, version)
    page = await c.list_tasks(pb.ListTasksRequest(page_size=2))
    assert len(page.tasks) == 2 and page.next_page_token and page.total_size >= 2, page
    more = await c.list_tasks(pb.ListTasksRequest(page_size=2, page_token=page.next_page_token))
    assert {t.id for t in more.tasks}.isdisjoint({t.id for t in page.tasks})


async def pushes(server, binding, version):
    c = await client(server, binding, version, streaming=False)
    task = (await tell(c, message("tck-input-required")))[-1].task
    wish = pb.TaskPushNotificationConfig(task_id=task.id, id="cfg", url="http://127.0.0.1:9/hook", token="tok")
    made = await c.create_task_push_notification_config(wish)
    assert made.id == "cfg" and made.token == "tok", made
    found = await c.get_task_push_notification_config(pb.GetTaskPushNotificationConfigRequest(task_id=task.id, id="cfg"))
    assert found.url == wish.url
    if (binding, version) != ("HTTP+JSON", "0.3"):  # the client has no such method there
        listed = await c.list_task_push_notification_configs(pb.ListTaskPushNotificationConfigsRequest(task_id=task.id))
        assert len(listed.configs) == 1
        await c.delete_task_push_notification_config(
            pb.DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="cfg")
        )


async def refusal(call):
    try:
        answered = await call
    except Exception as error:  # of any kind: the caller looks at it
        return error
    raise AssertionError(f"no error: {answered}")


async def errors(server, binding, version):
    c = await client(server, binding, version, streaming=False)
    error = await refusal(c.get_task(pb.GetTaskRequest(id="nope")))
    assert "not found" in str(error).lower(), error


async def no_way_in(server, binding, version):
    """What is refused before the protocol is looked at comes as an error of the SDK too, not as one of its parsers."""
    c = await client(server, binding, version, streaming=False, token="wrong")
    error = await refusal(tell(c, message("m")))
    assert type(error).__module__.startswith("a2a."), repr(error)
    assert any(word in str(error).lower() for word in ("401", "unauth", "token")), error
    if binding != "GRPC":
        c = await client(server, binding, version, streaming=False)
        error = await refusal(tell(c, message("m", "x" * (33 << 20))))
        assert type(error).__module__.startswith("a2a."), repr(error)
        assert "413" in str(error) or "too large" in str(error), error


async def card(server, binding, version):
    c = await client(server, binding, version)
    found = await c.get_extended_agent_card(pb.GetExtendedAgentCardRequest())
    assert found.name == "tck", found


async def signed(server, binding, version):
    from a2a.utils.signing import create_signature_verifier
    from jwt import PyJWK

    async with httpx.AsyncClient(trust_env=False) as http:

        def key(kid, jku):
            keys = httpx.get(jku, trust_env=False).json()["keys"]
            return PyJWK(next(key for key in keys if key["kid"] == kid))

        verify = create_signature_verifier(key, ["ES256"])
        found = await A2ACardResolver(http, server.url).get_agent_card(signature_verifier=verify)
        found.name = "another"
        try:
            verify(found)
        except Exception:
            return
        raise AssertionError("a changed card passes")


async def asks_and_runs(server, binding, version):
    """The agent itself, which asks before it runs a command, and goes on when a message with the task's id says so."""
    for word, name, made in (("yes", "allowed", True), ("no", "denied", False)):
        file = f"{name}-{binding}-{version}".replace("+", "-")
        c = await client(server, binding, version, streaming=False)
        asked = (await tell(c, message("m", gander_server.touch(file))))[-1].task
        assert asked.status.state == pb.TASK_STATE_INPUT_REQUIRED, asked
        assert f"touch {file}" in str(asked.status.message), asked.status.message
        assert not server.holds(file), "it ran before anybody said so"
        done = (await tell(c, message("m", word, task_id=asked.id, context_id=asked.context_id)))[-1].task
        assert done.status.state == pb.TASK_STATE_COMPLETED, done
        assert server.holds(file) == made, (word, file)


async def only_prompts(server, binding, version):
    """A token without the scope to answer is refused in the SDK's own words, and the question stays open."""
    c = await client(server, binding, version, streaming=False, token=server.prompting)
    file = f"unapproved-{binding}-{version}".replace("+", "-")
    asked = (await tell(c, message("m", gander_server.touch(file))))[-1].task
    assert asked.status.state == pb.TASK_STATE_INPUT_REQUIRED, asked
    error = await refusal(tell(c, message("m", "yes", task_id=asked.id, context_id=asked.context_id)))
    assert type(error).__module__.startswith("a2a."), repr(error)
    assert (await c.get_task(pb.GetTaskRequest(id=asked.id))).status.state == pb.TASK_STATE_INPUT_REQUIRED
    assert not server.holds(file)


CASES = [streams, sends, answers, cancels_and_subscribes, lists, pushes, errors, card]
NATIVE = [asks_and_runs, only_prompts, no_way_in]
BINDINGS = {"1.0": ("JSONRPC", "HTTP+JSON", "GRPC"), "0.3": ("JSONRPC", "HTTP+JSON")}


def run(server, cases):
    server.client_token, server.prompting = server.token(), server.token("prompting", "prompt")
    for version, bindings in BINDINGS.items():
        for binding in bindings:
            for check in cases:
                if check is lists and version == "0.3":
                    continue  # 0.3 has no lists
                name = f"sdk-{version}-{binding}-{check.__name__}"
                gander_server.case(name, lambda: asyncio.run(check(server, binding, version)))


with gander_server.conformance(GANDER, GANDER_A2A_GRPC="true") as server:
    gander_server.case("sdk-card-is-signed", lambda: asyncio.run(signed(server, None, None)))
    run(server, CASES)
with gander_server.server(GANDER, GANDER_A2A_GRPC="true") as server:
    run(server, NATIVE)
