"""Installs each package in a clean Debian folder, as somebody without Rust would, and uses it.

    drive.py PACKAGES WORK

Prints `pass NAME`, `fail NAME reason` or `skip NAME reason` for every step, and how long it took from the file to the first answer.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import arm64
import metadata
import registry
from debian import HOME, Debian
from steps import attempt, run, the_one

SOMEBODY = "somebody:somebody"


def ways(packages):
    """Name, files, how it is installed and by whom, the program, how it is removed."""
    tarball = the_one(packages, "gander-*-linux-x64.tar.gz")
    folder = tarball.name.removesuffix(".tar.gz")
    deb = the_one(packages, "gander_*_amd64.deb")
    npm = [the_one(packages, "gander-server-[0-9]*.tgz"), the_one(packages, "gander-server-linux-x64-*.tgz")]
    wheel = the_one(packages, "gander_server-*x86_64.whl")
    files = " ".join(f"/tmp/{file.name}" for file in npm)
    npx = "npx --offline --yes " + " ".join(f"--package=/tmp/{file.name}" for file in npm) + " gander"
    return [
        ("tarball", [tarball], f"tar xzf /tmp/{tarball.name}", SOMEBODY, f"/{HOME}/{folder}/bin/gander", f"rm -r {folder}"),
        ("deb", [deb], f"apt-get install --yes --no-install-recommends /tmp/{deb.name}", "root", "gander", "apt-get purge --yes gander"),
        ("npm", npm, f"npm install --offline --no-audit --no-fund --prefix apps {files}", SOMEBODY, f"/{HOME}/apps/node_modules/.bin/gander", "rm -r apps"),
        ("npx", npm, "true", SOMEBODY, npx, "rm -r .npm"),
        ("wheel", [wheel], f"python3 -m venv venv && venv/bin/pip install --no-index /tmp/{wheel.name}", SOMEBODY, f"/{HOME}/venv/bin/gander", "rm -r venv"),
        ("uvx", [wheel], "true", SOMEBODY, f"uvx --offline --from /tmp/{wheel.name} gander-server", "rm -r .cache/uv"),
    ]


def install_and_use(debian, way, work):
    name, files, install, user, program, remove = way
    debian.renew()
    debian.put(*files)
    before = debian.files()
    begun = time.monotonic()
    debian.sh(install, user)
    answer = debian.sh(f"{program} run help")
    seconds = time.monotonic() - begun
    if "scripted demo" not in answer:
        raise RuntimeError(f"not the demo's answer: {answer[-500:]}")
    print(f"{name}: {seconds:.1f} s from the file to the first answer", flush=True)
    check = debian.sh(f"{program} self check")
    if "whole: its checksum matches" not in check or "the full one" not in check:
        raise RuntimeError(check)
    if name in ("tarball", "deb"):
        share = f"/{HOME}/{files[0].name.removesuffix('.tar.gz')}/share" if name == "tarball" else "/usr/share"
        check_manual_and_completion(debian, name, share)
    open_page(debian, program, work / f"page-{name}.png")
    debian.sh(f"{program} server stop")
    debian.sh(remove, user)
    left = sorted(name for name in debian.files() - before if not name.startswith((f"{HOME}/.local/share/gander/", f"{HOME}/.config/gander/")))
    if left:
        raise RuntimeError(f"left behind: {left[:20]}")


def check_manual_and_completion(debian, name, share):
    """The pages are read by a real `man`, the script is asked by a real bash."""
    pages = sorted((debian.root / share[1:] / "man/man1").glob("gander*.1*"))
    for page in pages:
        shown = subprocess.run(["man", "--warnings", "--local-file", page], capture_output=True, text=True, env={**os.environ, "MANWIDTH": "120"})
        if shown.returncode != 0 or shown.stderr.strip() or "SYNOPSIS" not in shown.stdout:
            raise RuntimeError(f"man {page.name}: {shown.stderr[:500]}")
    if len(pages) < 40:
        raise RuntimeError(f"only {len(pages)} manual pages")
    script = "/usr/share/bash-completion/completions/gander" if name == "deb" else f"{share}/completions/gander.bash"
    path = "" if name == "deb" else f'PATH="{share.removesuffix("/share")}/bin:$PATH"; '
    ask = 'COMP_WORDS=(gander ses) COMP_CWORD=1 COMP_LINE="gander ses" COMP_POINT=10 COMP_TYPE=9; "$(complete -p gander | grep -oE -- "-F [^ ]+" | cut -c4-)" gander ses gander; echo "${COMPREPLY[@]}"'
    found = debian.sh(f"bash -c '{path}. {script}; {ask}'")
    if found.split() != ["sessions"]:
        raise RuntimeError(f"completion of `gander ses`: {found!r}")
    if name == "deb":
        unit = debian.root / "usr/lib/systemd/user/gander.service"
        program = re.search(r"^ExecStart=(\S+)", unit.read_text(), re.M)[1]
        if not (debian.root / program[1:]).exists():
            raise RuntimeError(f"the unit starts what is not there: {program}")


def open_page(debian, program, picture):
    """The page of the background server, opened with the link that `gander open` gives, in a real browser."""
    link = next(line for line in debian.sh(f"{program} open --print --listen 127.0.0.1:0").splitlines() if line.startswith("http://127.0.0.1:"))
    # The title of the session that `run help` made: the page has signed in and read the list.
    run(["node", pathlib.Path(__file__).parent / "page.mjs", link, "help", picture])


def is_static(packages):
    """Whether the packaged binary needs no libraries: a development build does, and cannot run in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        run(["tar", "xzf", the_one(packages, "gander-*-linux-x64.tar.gz"), "--strip-components=1", "-C", folder])
        return subprocess.run(["ldd", pathlib.Path(folder, "bin/gander")], capture_output=True).stdout.count(b"=>") == 0


def run_in_scratch(debian, packages):
    """What the container file puts into an image from scratch, without an image."""
    tarball = the_one(packages, "gander-*-linux-x64.tar.gz")
    copied = dict(re.findall(r"^COPY (\S+) (\S+)$", (packages / "Containerfile").read_text(), re.M))
    with tempfile.TemporaryDirectory() as folder:
        context, image = pathlib.Path(folder, "context"), pathlib.Path(folder, "image")
        context.mkdir()
        run(["tar", "xzf", tarball, "--strip-components=1", "-C", context])
        run(["cp", "/etc/ssl/certs/ca-certificates.crt", context])
        for source, target in copied.items():
            (image / target[1:]).parent.mkdir(parents=True, exist_ok=True)
            run(["cp", context / source, image / target[1:]])
        (image / "data").mkdir()
        environment = ["env", "-i", "GANDER_DATA=/data", "HOME=/data"]
        # The command of the image, on a port that is free here.
        server = subprocess.Popen([*environment, "chroot", image, "/bin/gander", "serve", "--listen", "0.0.0.0:0", "--insecure-plain"], stdout=subprocess.PIPE, text=True)
        try:
            port = re.search(r":(\d+)", next(line for line in server.stdout if "http://" in line).split("http://")[1])[1]
            token = run([*environment, "chroot", image, "/bin/gander", "token"]).split()[-1]
            answer = arm64.prompt_over_http(f"http://127.0.0.1:{port}", token)
            if "scripted demo" not in answer:
                raise RuntimeError(f"not the demo's answer: {answer[-500:]}")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


def main():
    packages, work = map(pathlib.Path, sys.argv[1:])
    work.mkdir(parents=True, exist_ok=True)
    os.umask(0o022)
    metadata.check_all(packages, work)
    attempt("registry-login", lambda: registry.check_login(packages))
    debian = Debian(work)
    for way in ways(packages):
        attempt(way[0], lambda: install_and_use(debian, way, work))
    if is_static(packages):
        attempt("scratch", lambda: run_in_scratch(debian, packages))
    else:
        print("the binary of these packages is not static: not tried in an empty folder", flush=True)
    if list(packages.glob("*-linux-arm64.tar.gz")):
        attempt("arm64", lambda: arm64.run_under_qemu(packages))
    else:
        print("no packages for arm64 in this folder: not tried under qemu", flush=True)
    debian.remove()


if __name__ == "__main__":
    main()
