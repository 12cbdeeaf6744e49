"""A person at a terminal: gander in tmux, with a data directory of its own and a model on loopback."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE = 30


class Terminal:
    """One tmux window. What is on its screen can be read and waited for."""

    def __init__(self, home, name, columns=100, rows=40, environment=None):
        self.home, self.name = home, name
        variables = {**home.environment, **(environment or {})}
        settings = [f"{key}={value}" for key, value in variables.items()]
        home.tmux("new-session", "-d", "-s", name, "-x", str(columns), "-y", str(rows), "-c", str(home.work),
                   "env", "-u", "TMUX", *settings, "bash", "--norc", "--noprofile")
        home.tmux("set-option", "-t", name, "history-limit", "5000")
        self.mark = "PS1"
        self.type("PS1='$ '; clear")

    def type(self, text, enter=True):
        self.home.tmux("send-keys", "-t", self.name, "-l", text)
        if enter:
            self.press("Enter")

    def press(self, *keys):
        self.home.tmux("send-keys", "-t", self.name, *keys)

    def screen(self):
        """What is on the screen since the last command was typed, as text."""
        shown = self.home.tmux("capture-pane", "-p", "-J", "-S", "-2000", "-t", self.name)
        lines = "\n".join(line.rstrip() for line in shown.splitlines()).rstrip()
        at = lines.rfind(self.mark)
        if at < 0 and self.mark.startswith(":"):
            return ""  # what was typed is not there yet: the screen is still that of the command before
        return lines[max(0, at):]

    def colours(self):
        return self.home.tmux("capture-pane", "-p", "-e", "-S", "-2000", "-t", self.name)

    def wait(self, pattern, patience=PATIENCE):
        """Until the text is there; gives the match."""
        began = time.monotonic()
        while True:
            shown = self.screen()
            found = re.search(pattern, shown)
            if found:
                return found
            if time.monotonic() - began > patience:
                raise AssertionError(f"waited in vain for {pattern!r}, on the screen:\n{shown.rstrip()}")
            time.sleep(0.05)

    def run(self, line):
        """Types a command after the last one has ended."""
        self.mark = f": {time.monotonic_ns()};"
        self.type(f"clear; {self.mark} {line}; echo ended=$?")

    def ended(self, code=0, patience=PATIENCE):
        found = self.wait(r"(?m)^ended=(\d+)", patience=patience)
        assert found.group(1) == str(code), f"exit status {found.group(1)}, not {code}:\n{self.screen()}"
        return self.screen()

    def keep(self, name):
        """The screen, kept for people to look at."""
        (self.home.captures / f"{name}.txt").write_text(self.screen().rstrip() + "\n")
        (self.home.captures / f"{name}.ansi").write_text(self.colours())


class TestHome:
    def __init__(self, gander, captures, port):
        self.gander, self.captures = Path(gander), Path(captures)
        self.captures.mkdir(parents=True, exist_ok=True)
        self.root = Path(tempfile.mkdtemp(prefix="gander-terminal-"))
        self.work = self.root / "work"
        self.work.mkdir()
        (self.work / "calc.py").write_text("def add(a, b):\n    return a - b\n")
        bin_folder = self.root / "bin"
        bin_folder.mkdir()
        (bin_folder / "gander").symlink_to(self.gander)
        config = self.root / ".config" / "gander"
        config.mkdir(parents=True)
        settings = config / "gander.toml"
        settings.write_text(
            '[model]\ndefault = "mock/mock"\n\n[providers.mock]\nengine = "openai_chat"\ntitle = "Mock"\n'
            f'base_url = "http://127.0.0.1:{port}/v1"\nkey_variables = []\ndefault_model = "mock"\n'
            '\n[providers.mock.models]\nmock = { window = 128000, max_output = 4096, input = 1.0, output = 2.0 }\n'
        )
        settings.chmod(0o600)
        self.environment = {
            "HOME": str(self.root), "PATH": f"{bin_folder}:/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8",
            "GANDER_DATA": str(self.root / "data"), "TERM": "screen-256color", "TZ": "Europe/Berlin",
        }
        self.socket = str(self.root / "tmux")

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *words], capture_output=True, text=True,
                              env={**self.environment, "PATH": "/usr/bin:/bin"})
        if done.returncode != 0:
            raise AssertionError(f"tmux {' '.join(words)}: {done.stderr}")
        return done.stdout

    def terminal(self, name, **options):
        return Terminal(self, name, **options)

    def gander_run(self, *words, stdin=subprocess.DEVNULL, **options):
        """Runs a command as a script does."""
        options = {"input": stdin} if isinstance(stdin, str) else {"stdin": stdin, **options}
        return subprocess.run([str(self.gander), *words], cwd=self.work, env=self.environment, capture_output=True, text=True,
                              timeout=60, **options)

    def server_pids(self):
        """Servers of this data directory, found by their command line."""
        pids = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if b"serve" in words and str(self.root / "data").encode() in words:
                    pids.append(int(entry.name))
        return pids

    def close(self):
        try:
            self.tmux("kill-server")
        except AssertionError as error:
            print(error, file=sys.stderr)
        for pid in self.server_pids():
            os.kill(pid, 9)
        shutil.rmtree(self.root, ignore_errors=True)
