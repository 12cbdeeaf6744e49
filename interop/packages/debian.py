"""A minimal Debian in a folder, with Python, Node and uv and without Rust."""

import pathlib
import shutil
import subprocess
import sys

from steps import run

RELEASE = "bookworm"
HOME = "home/somebody"
# What tools of the system write when something is installed, whatever it is.
OF_THE_SYSTEM = ("var/", "proc/", "sys/", "dev/", "tmp/", "run/", "etc/ld.so.cache", "root/", HOME + "/.npm", HOME + "/.cache", HOME + "/.local/share/uv/")


class Debian:
    """As new before every package."""

    def __init__(self, work):
        self.pristine, self.root = work / "debian-pristine", work / "debian"
        if not (self.pristine / "bin/sh").exists():
            shutil.rmtree(self.pristine, ignore_errors=True)
            run(["debootstrap", "--variant=minbase", "--include=python3,python3-venv,python3-pip", RELEASE, self.pristine, mirror()])
        self.add_node()
        self.add_uv(work)
        run(["chroot", self.pristine, "sh", "-c", "id somebody >/dev/null 2>&1 || useradd --create-home somebody"])

    def add_node(self):
        node = pathlib.Path(shutil.which("node")).resolve().parent.parent
        if not (self.pristine / "opt/node/bin/node").exists():
            for part in ("bin", "lib/node_modules/npm"):
                shutil.copytree(node / part, self.pristine / "opt/node" / part, symlinks=True)

    def add_uv(self, work):
        if not (self.pristine / "usr/local/bin/uvx").exists():
            run([sys.executable, "-m", "venv", work / "uv"])
            run([work / "uv/bin/pip", "install", "--quiet", "uv"])
            for name in ("uv", "uvx"):
                shutil.copy(work / "uv/bin" / name, self.pristine / "usr/local/bin")

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
