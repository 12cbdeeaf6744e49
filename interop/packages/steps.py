"""Running programs and telling how a step ended."""

import subprocess


def run(command):
    """What the program printed; it must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))[-300:]}: {done.returncode} {done.stderr[-1500:]} {done.stdout[-500:]}")
    return done.stdout


def the_one(packages, pattern):
    found = sorted(packages.glob(pattern))
    if len(found) != 1:
        raise RuntimeError(f"{pattern}: {[file.name for file in found]}")
    return found[0]


def attempt(name, step):
    try:
        step()
        print(f"pass {name}", flush=True)
    except (RuntimeError, OSError, ValueError, KeyError, TypeError, StopIteration, subprocess.SubprocessError) as error:
        print(f"fail {name} {type(error).__name__} {' '.join(str(error).split())}", flush=True)
