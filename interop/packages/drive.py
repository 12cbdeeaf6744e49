"""Installs each package in a clean Debian folder, as somebody without Rust would, and uses it.

    drive.py PACKAGES WORK

Prints `pass NAME` or `fail NAME reason` for every step, and how long it took from the file to the first answer.
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

RELEASE = "bookworm"
HOME = "home/somebody"
# What tools of the system write when something is installed, whatever it is.
OF_THE_SYSTEM = ("var/", "proc/", "sys/", "dev/", "tmp/", "run/", "etc/ld.so.cache", "root/", HOME + "/.npm", HOME + "/.cache")


class Debian:
    """A minimal Debian in a folder, as new before every package."""

    def __init__(self, work):
        self.pristine, self.root = work / "debian-pristine", work / "debian"
        if not (self.pristine / "bin/sh").exists():
            shutil.rmtree(self.pristine, ignore_errors=True)
            run(["debootstrap", "--variant=minbase", "--include=python3,python3-venv,python3-pip", RELEASE, self.pristine, mirror()])
        node = pathlib.Path(shutil.which("node")).resolve().parent.parent
        if not (self.pristine / "opt/node/bin/node").exists():
            for part in ("bin", "lib/node_modules/npm"):
                shutil.copytree(node / part, self.pristine / "opt/node" / part, symlinks=True)
        run(["chroot", self.pristine, "sh", "-c", "id somebody >/dev/null 2>&1 || useradd --create-home somebody"])

    def remove(self):
        subprocess.run(["umount", self.root / "proc"], capture_output=True)
        run(["rm", "-rf", "--one-file-system", self.root])

    def renew(self):
        self.remove()
        run(["cp", "-a", self.pristine, self.root])
        run(["mount", "-t", "proc", "proc", self.root / "proc"])

    def put(self, *files):
        for file in files:
            shutil.copy(file, self.root / "tmp")

    def command(self, line, user):
        chroot = ["chroot"] + ([f"--userspec={user}"] if user != "root" else []) + [str(self.root)]
        home = "/root" if user == "root" else "/" + HOME
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/node/bin"
        return chroot + ["env", "-i", f"HOME={home}", f"PATH={path}", "LANG=C.UTF-8", "sh", "-c", f"cd {home} && {line}"]

    def sh(self, line, user="somebody:somebody"):
        return run(self.command(line, user))

    def files(self):
        found = subprocess.run(["find", ".", "-xdev", "-not", "-type", "d", "-printf", "%P\\n"], cwd=self.root, capture_output=True, text=True, check=True)
        return {name for name in found.stdout.splitlines() if not name.startswith(OF_THE_SYSTEM)}


def mirror():
    """The mirror that this machine's own packages come from."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=True).stdout
    return next(line for line in listed.splitlines() if line and "security" not in line)


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))[-300:]}: {done.returncode} {done.stderr[-1500:]} {done.stdout[-500:]}")
    return done.stdout


def the_one(packages, pattern):
    found = sorted(packages.glob(pattern))
    if len(found) != 1:
        raise RuntimeError(f"{pattern}: {[file.name for file in found]}")
    return found[0]


def ways(packages):
    """Name, files, how it is installed and by whom, the program, how it is removed."""
    tarball = the_one(packages, "gander-*-linux-x64.tar.gz")
    folder = tarball.name.removesuffix(".tar.gz")
    deb = the_one(packages, "gander_*_amd64.deb")
    npm = [the_one(packages, "gander-server-[0-9]*.tgz"), the_one(packages, "gander-server-linux-x64-*.tgz")]
    wheel = the_one(packages, "gander_server-*x86_64.whl")
    tgz = " ".join(f"/tmp/{file.name}" for file in npm)
    somebody = "somebody:somebody"
    return [
        ("tarball", [tarball], f"tar xzf /tmp/{tarball.name}", somebody, f"/{HOME}/{folder}/bin/gander", f"rm -r {folder}"),
        ("deb", [deb], f"dpkg --install --force-depends /tmp/{deb.name}", "root", "/usr/bin/gander", "dpkg --purge gander"),
        ("npm", npm, f"npm install --offline --no-audit --no-fund --prefix apps {tgz}", somebody, f"/{HOME}/apps/node_modules/.bin/gander", "rm -r apps"),
        ("wheel", [wheel], f"python3 -m venv venv && venv/bin/pip install --no-index /tmp/{wheel.name}", somebody, f"/{HOME}/venv/bin/gander", "rm -r venv"),
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
    if name == "deb":
        debian.sh("gzip -t /usr/share/man/man1/gander-run.1.gz && test -s /usr/share/bash-completion/completions/gander && test -s /usr/lib/systemd/user/gander.service")
    if name == "tarball":
        open_page(debian, program, work)
    debian.sh(f"{program} server stop")
    debian.sh(remove, user)
    left = sorted(name for name in debian.files() - before if not name.startswith((f"{HOME}/.local/share/gander/", f"{HOME}/.config/gander/")))
    if left:
        raise RuntimeError(f"left behind: {left[:20]}")


def open_page(debian, program, work):
    """The page of the installed program, in a real browser."""
    server = subprocess.Popen(debian.command(f"exec {program} --data /tmp/served serve --listen 127.0.0.1:0", "somebody:somebody"), stdout=subprocess.PIPE, text=True)
    try:
        line = next(line for line in server.stdout if "http://127.0.0.1:" in line)
        address = "http://127.0.0.1:" + line.split("http://127.0.0.1:")[1].split("/")[0].split()[0]
        with urllib.request.urlopen(address + "/") as page:
            if b"assets/" not in page.read():
                raise RuntimeError("not the full page")
        with tempfile.TemporaryDirectory() as profile:
            run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}", "--virtual-time-budget=3000",
                 f"--screenshot={work / 'page.png'}", address + "/"])
        if (work / "page.png").stat().st_size < 5000:
            raise RuntimeError("the picture of the page is empty")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def metadata(packages, work):
    """What publishing would check, without publishing."""
    for line in (packages / "SHA256SUMS").read_text().splitlines():
        expected, name = line.split("  ")
        if hashlib.sha256((packages / name).read_bytes()).hexdigest() != expected:
            raise RuntimeError(f"checksum of {name}")
    for package in packages.glob("*.tgz"):
        run(["npm", "publish", "--dry-run", package])
    tools = work / "twine"
    if not (tools / "bin/twine").exists():
        run([sys.executable, "-m", "venv", tools])
        run([tools / "bin/pip", "install", "--quiet", "twine==6.2.0"])
    run([tools / "bin/twine", "check", "--strict", *packages.glob("*.whl")])
    entry = json.loads((packages / "agent.json").read_text())
    if not {"id", "name", "version", "description", "distribution"} <= entry.keys():
        raise RuntimeError(f"agent.json: {sorted(entry)}")
    sbom = json.loads((packages / "sbom.cdx.json").read_text())
    if len(sbom["components"]) < 100 or not all(part["purl"] and part["licenses"][0]["expression"] for part in sbom["components"]):
        raise RuntimeError("the bill of materials is not whole")


def attempt(name, step):
    try:
        step()
        print(f"pass {name}", flush=True)
    except (RuntimeError, OSError, ValueError, StopIteration, subprocess.SubprocessError) as error:
        print(f"fail {name} {' '.join(str(error).split())}", flush=True)


def main():
    packages, work = map(pathlib.Path, sys.argv[1:])
    work.mkdir(parents=True, exist_ok=True)
    os.umask(0o022)
    attempt("metadata", lambda: metadata(packages, work))
    debian = Debian(work)
    for way in ways(packages):
        attempt(way[0], lambda: install_and_use(debian, way, work))
    debian.remove()


if __name__ == "__main__":
    main()
