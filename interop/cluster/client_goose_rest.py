"""goose's REST as its desktop uses it, behind a load balancer: a prompt has an id, and a stream goes on after the last event that was read.

No client of these routes is published; what is here are the requests that the desktop makes, by hand.
"""

import asyncio
import json
import urllib.request
import uuid

import turns

HEADERS = {"X-Secret-Key": turns.TOKEN, "Content-Type": "application/json"}


def ask(path, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    wish = urllib.request.Request(turns.URL + path, data, {**HEADERS, **headers})
    return urllib.request.urlopen(wish, timeout=60)


class Desktop:
    def __init__(self):
        self.session, self.last, self.texts, self.over, self.seen = None, None, {}, set(), set()

    def turn(self, word, prompt):
        if not self.session:
            self.session = json.load(ask("/agent/start", {"working_dir": turns.FOLDER}))["id"]
        request = str(uuid.uuid5(uuid.NAMESPACE_OID, word))
        if request not in self.over:
            said = {"role": "user", "created": 1, "content": [{"type": "text", "text": prompt}], "metadata": {"userVisible": True, "agentVisible": True}}
            ask(f"/sessions/{self.session}/reply", {"request_id": request, "user_message": said}).read()
            self.follow(request)
        return self.session, self.texts[request]

    def follow(self, request):
        after = {"Last-Event-ID": self.last} if self.last else {}
        with ask(f"/sessions/{self.session}/events", **after) as stream:
            event = {}
            for line in stream:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field in ("id", "data"):
                    event[field] = value
                if field or not event.get("data"):
                    continue
                self.hear(event)
                event = {}
                if request in self.over:
                    return
        raise ConnectionError("the stream ended before the turn")

    def hear(self, event):
        if event.get("id"):
            if event["id"] in self.seen:
                raise turns.Wrong(f"told twice: {event['id']}")
            self.seen.add(event["id"])
            self.last = event["id"]
        told = json.loads(event["data"])
        request = told.get("chat_request_id") or told.get("request_id")
        if told["type"] == "Message" and told["message"]["role"] == "assistant":
            parts = [part["text"] for part in told["message"]["content"] if part["type"] == "text"]
            self.texts[request] = self.texts.get(request, "") + "".join(parts)
        if told["type"] == "Error":
            raise turns.Wrong(f"the turn failed: {told}")
        if told["type"] == "Finish":
            self.over.add(request)


async def main():
    desktop = Desktop()

    async def attempt(word, prompt, again):
        return await asyncio.to_thread(desktop.turn, word, prompt)

    await turns.take_turns(attempt)


asyncio.run(main())
