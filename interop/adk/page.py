"""The adk web page in a headless browser, served by gander: load, chat, stream, confirm, artifact, session list.

Prints `pass NAME` or `fail NAME reason`. Usage: page.py BASE [picture folder]
"""

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import websockets

BASE = sys.argv[1]
PICTURES = sys.argv[2] if len(sys.argv) > 2 else None
PATIENCE = 60

# Fonts come from elsewhere and there is no network: the page says so and goes on.
HARMLESS = ("fonts.googleapis.com", "fonts.gstatic.com", "net::ERR_NAME_NOT_RESOLVED")

PRESS = """(() => {
  const wanted = %s;
  const all = [...document.querySelectorAll('button,[role=tab],a,[role=option],[role=menuitem]')];
  const name = (one) => [one.innerText, one.getAttribute('aria-label'), one.getAttribute('mattooltip')].join(' ');
  const found = all.find((one) => (one.innerText || '').trim() === wanted) || all.find((one) => name(one).includes(wanted));
  if (!found) return all.map(name).join(' | ').slice(0, 800);
  found.click();
  return 'pressed';
})()"""

FOCUS = """(() => {
  const box = document.querySelector('textarea');
  if (box) { box.focus(); box.select(); }
  return !!box;
})()"""


class Page:
    def __init__(self, socket):
        self.socket, self.waiting, self.number, self.problems, self.requests = socket, {}, 0, [], []
        self.bodies = []

    async def listen(self):
        async for text in self.socket:
            message = json.loads(text)
            if "id" in message:
                self.waiting.pop(message["id"]).set_result(message)
                continue
            params = message.get("params", {})
            if message["method"] == "Runtime.exceptionThrown":
                self.problems.append(json.dumps(params["exceptionDetails"])[:300])
            elif message["method"] == "Runtime.consoleAPICalled" and params["type"] == "error":
                self.problems.append(json.dumps([one.get("value") or one.get("description") for one in params["args"]])[:300])
            elif message["method"] == "Network.responseReceived" and params["response"]["status"] >= 400:
                self.problems.append(f"{params['response']['status']} {params['response']['url']}")
            elif message["method"] == "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
                self.bodies.append(params["request"].get("postData", ""))

    async def command(self, method, **params):
        self.number += 1
        answer = asyncio.get_running_loop().create_future()
        self.waiting[self.number] = answer
        await self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        return await asyncio.wait_for(answer, PATIENCE)

    async def value(self, expression):
        answer = await self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return answer.get("result", {}).get("result", {}).get("value")

    async def until(self, what, expression):
        end, last = time.time() + PATIENCE, None
        while time.time() < end:
            last = await self.value(expression)
            if last is True or last == "pressed":
                return
            await asyncio.sleep(0.2)
        text = await self.value("document.body.innerText")
        raise AssertionError(f"{what}: {last}; the page says: {text}")

    async def shows(self, text, times=1):
        await self.until(f"shows {text!r}", f"document.body.innerText.split({json.dumps(text)}).length > {times}")

    async def press(self, name):
        await self.until(f"press {name!r}", PRESS % json.dumps(name))

    async def say(self, text):
        await self.until("a box to write in", FOCUS)
        await self.command("Input.insertText", text=text)
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
        await self.command("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
        await self.command("Input.dispatchKeyEvent", type="keyUp", **key)

    async def picture(self, name):
        if PICTURES:
            os.makedirs(PICTURES, exist_ok=True)
            shot = await self.command("Page.captureScreenshot", format="png")
            with open(os.path.join(PICTURES, name + ".png"), "wb") as file:
                file.write(base64.b64decode(shot["result"]["data"]))


async def visit(page):
    for domain in ("Page", "Network", "Runtime"):
        await page.command(domain + ".enable")
    await page.command("Page.navigate", url=f"{BASE}/dev-ui/?app=wire")
    yield "load", page.until("a box to write in", FOCUS)
    yield "chat", chat(page)
    yield "stream", stream(page)
    yield "confirm", confirm(page)
    yield "artifact", artifact(page)
    yield "sessions", sessions(page)
    yield "traces", traces(page)
    yield "evaluation", evaluation(page)
    yield "asked", asked(page)
    yield "console", console(page)


async def chat(page):
    await page.say("think")
    await page.shows("The answer is 42.")
    await page.picture("chat")


async def stream(page):
    """Streaming is off until somebody ticks it in the menu; it stays on for the rest."""
    await page.press("more_vert")
    await page.press("Streaming")
    await page.command("Input.dispatchKeyEvent", type="keyDown", key="Escape", code="Escape", windowsVirtualKeyCode=27)
    await page.say("many 200")
    await page.shows("word199")
    assert any('"streaming":true' in body for body in page.bodies), page.bodies
    await page.picture("stream")


async def confirm(page):
    await page.say("confirm")
    await page.shows("delete_file")
    await page.picture("asked")
    await confirm_form(page)
    await page.shows("Tool delete_file said")
    await page.picture("confirmed")


async def confirm_form(page):
    """The form has a box to tick and a button."""
    tick = "(() => { const box = document.querySelector('input[type=checkbox]'); if (box && !box.checked) box.click(); return true; })()"
    await page.value(tick)
    await page.press("Submit")


async def artifact(page):
    await page.say("artifact")
    await page.shows("Tool save_note said")
    await page.until("the artifact was fetched", "true")
    end = time.time() + PATIENCE
    while not any("/artifacts/note.txt/versions/0" in url for url in page.requests):
        assert time.time() < end, "the page did not fetch the artifact"
        await asyncio.sleep(0.2)
    await page.picture("artifact")


async def sessions(page):
    before = len(page.requests)
    listed = f"fetch('{BASE}/apps/wire/users/user/sessions').then((got) => got.json()).then((all) => all.length === 1)"
    await page.until("one session", listed)
    id_of = f"fetch('{BASE}/apps/wire/users/user/sessions').then((got) => got.json()).then((all) => all[0].id)"
    session = await page.value(id_of)
    await page.command("Page.navigate", url=f"{BASE}/dev-ui/?app=wire&session={session}&userId=user")
    await page.shows("The answer is 42.")
    await page.shows("Tool delete_file said")
    assert any(url.endswith(f"/sessions/{session}") for url in page.requests[before:]), "the session was not loaded"
    await page.picture("session")


async def traces(page):
    """What happened in the session that is open, as spans."""
    await page.press("Traces")
    await page.picture("traces")
    await page.shows("save_note")
    await page.shows("scripted-1")
    await page.picture("traces")


async def evaluation(page):
    """A set, made by the buttons of the tab; python:evaluations runs cases."""
    await page.press("Evals")
    await page.press("add\nNew")
    await page.picture("eval-new-set")
    await page.press("Create")
    await page.picture("eval-set")
    made = f"fetch('{BASE}/dev/apps/wire/eval_sets').then((got) => got.json()).then((all) => all.length === 1)"
    await page.until("a set", made)


async def asked(page):
    """The agent itself, which asks before it runs a command: the person ticks the box and submits."""
    await page.command("Page.navigate", url=f"{BASE}/dev-ui/?app=gander")
    calls = [[{"tool": "shell", "args": {"command": "touch from-the-page"}}], [{"text": "All is well that ends."}]]
    await page.press("Events")
    await page.say(f"[[script:{json.dumps(calls)}]]")
    await page.shows("adk_request_confirmation")
    await page.picture("asked-by-the-agent")
    await confirm_form(page)
    await page.shows("All is well that ends.", 2)
    await page.picture("allowed")


async def console(page):
    found = [problem for problem in page.problems if not any(word in problem for word in HARMLESS)]
    assert not found, found


async def main(port):
    end = time.time() + PATIENCE
    while True:
        try:
            tabs = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port()}/json"))
            address = next(tab for tab in tabs if tab["type"] == "page")["webSocketDebuggerUrl"]
            break
        except (OSError, StopIteration):
            assert time.time() < end, "no browser"
            await asyncio.sleep(0.2)
    async with websockets.connect(address, max_size=None) as socket:
        page = Page(socket)
        listening = asyncio.create_task(page.listen())
        async for name, step in visit(page):
            try:
                await step
                print(f"pass page:{name}", flush=True)
            except Exception as problem:
                print(f"fail page:{name} {' '.join(repr(problem).split())[:1500]}", flush=True)
                await page.picture("failed-" + name)
        listening.cancel()


profile = tempfile.mkdtemp(prefix="adk-page-")
browser = subprocess.Popen(
    [os.environ.get("CHROMIUM", "chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
     "--disable-background-networking", "--disable-dev-shm-usage", "--remote-debugging-port=0",
     "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
     "--window-size=1400,900", f"--user-data-dir={profile}", "about:blank"],
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def debugging_port():
    with open(os.path.join(profile, "DevToolsActivePort")) as file:
        return int(file.readline())


try:
    asyncio.run(main(debugging_port))
finally:
    browser.terminate()
    browser.wait(20)
    shutil.rmtree(profile, ignore_errors=True)
