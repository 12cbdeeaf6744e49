"""Plays a short chat with the demo model in tmux and writes what was on the screen as a moving SVG."""

import re
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "interop" / "terminal"))

from moving_svg import moving_svg  # noqa: E402
from test_home import TestHome  # noqa: E402

COLUMNS, ROWS = 84, 24
# Seconds between two looks at the screen.
INTERVAL = 0.08
# Nobody wants to wait: the screen stands still no longer than this, except at the end.
LONGEST, LAST = 1.2, 3.0


class Recorder(threading.Thread):
    """Looks at a window of tmux until it is told to stop."""

    def __init__(self, home, name):
        super().__init__(daemon=True)
        self.home, self.name, self.frames, self.over = home, name, [], threading.Event()

    def run(self):
        while not self.over.is_set():
            self.look()
            time.sleep(INTERVAL)

    def look(self):
        # The cursor's place belongs to the picture.
        place = self.home.tmux("display-message", "-p", "-t", self.name, "#{cursor_x},#{cursor_y},#{cursor_flag}")
        screen = self.home.tmux("capture-pane", "-p", "-e", "-N", "-t", self.name).split("\n")[:ROWS]
        frame = (screen, tuple(map(int, place.split(","))))
        if not self.frames or self.frames[-1][1] != frame:
            self.frames.append((time.monotonic(), frame))

    def stop(self):
        self.over.set()
        self.join()


def type_slowly(terminal, text):
    for letter in text:
        terminal.type(letter, enter=False)
        time.sleep(0.07)
    time.sleep(0.3)
    terminal.press("Enter")


def play(terminal):
    type_slowly(terminal, "gander")
    terminal.wait(r"demo/demo · ask")
    type_slowly(terminal, "text")
    terminal.wait(r"(?s)println.*tokens in")
    time.sleep(1)
    type_slowly(terminal, "edit")
    terminal.wait(r"1\) Allow \(y\)")
    time.sleep(1)
    terminal.press("y")
    terminal.wait(r"(?s)→ Allow.*1\) Allow \(y\)")
    time.sleep(1)
    terminal.press("y")
    terminal.wait(r"(?s)→ Allow.*→ Allow.*tokens in")
    time.sleep(1)


def main(gander, path):
    home = TestHome(gander, "/tmp", 0)
    try:
        # Default settings and the demo model; a first start, but not the very first words about it.
        (home.root / ".config" / "gander" / "gander.toml").unlink()
        home.gander_run("run", "text")
        terminal = home.terminal("one", columns=COLUMNS, rows=ROWS, environment={"PS1": "$ "})
        terminal.wait(r"(?m)^\$$")
        home.tmux("clear-history", "-t", "one")
        terminal.mark = "$"
        recorder = Recorder(home, "one")
        recorder.start()
        play(terminal)
        recorder.stop()
    finally:
        home.close()
    times = [at for at, _ in recorder.frames]
    pauses = [min(later - at, LONGEST) for at, later in zip(times, times[1:])] + [LAST]
    frames = [([tidy(line, home) for line in screen], cursor) for _, (screen, cursor) in recorder.frames]
    Path(path).write_text(moving_svg(list(zip(frames, pauses)), COLUMNS, ROWS, "A chat in the terminal"))
    print(f"{path}: {len(frames)} frames, {sum(pauses):.0f} seconds, {Path(path).stat().st_size} bytes")


def tidy(line, home):
    """The folder of the recording is nobody's business."""
    return re.sub(re.escape(str(home.root)) + r"/?(work)?", "~/meadow", line)


main(*sys.argv[1:])
