"""Unpacks Python 3.14 of Debian's testing suite below a folder, for a machine whose own release has an older one.

Nothing is installed: the packages are taken apart, and Python runs with the dynamic loader and libraries that come with it.
The suite's signature, the index's hash and each package's hash are checked. Usage: fetch_python.py FOLDER
"""

import hashlib
import lzma
import os
import re
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

MIRROR, SUITE = "http://deb.debian.org/debian", "testing"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
WANTED = ["python3.14", "libpython3.14-stdlib"]
# What packages ask for and Python itself does not need.
NEEDLESS = re.compile(r"^(dpkg|debconf|media-types|tzdata|netbase|ca-certificates|openssl|libgcc-s1-dummy|readline-common|gcc-.*|libcrypt1-dummy)$")


def get(path: str) -> bytes:
    with urllib.request.urlopen(f"{MIRROR}/{path}", timeout=120) as answer:
        return answer.read()


def signed_release(folder: Path) -> str:
    signed, plain = folder / "InRelease", folder / "Release"
    signed.write_bytes(get(f"dists/{SUITE}/InRelease"))
    subprocess.run(["gpgv", "--quiet", "--keyring", KEYRING, "--output", plain, signed], check=True, stderr=subprocess.DEVNULL)
    return plain.read_text()


def check(data: bytes, expected: str, name: str) -> bytes:
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise SystemExit(f"{name} has another hash than its index says")
    return data


def index(release: str) -> dict[str, dict[str, str]]:
    path = "main/binary-amd64/Packages.xz"
    hashes = release.split("SHA256:", 1)[1]
    expected = re.search(rf"^ ([0-9a-f]{{64}}) +\d+ {re.escape(path)}$", hashes, re.M)
    text = lzma.decompress(check(get(f"dists/{SUITE}/{path}"), expected[1], path)).decode()
    packages = {}
    for block in text.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", block, re.M))
        if "Package" in fields:
            packages.setdefault(fields["Package"], fields)
    return packages


def needed(packages: dict[str, dict[str, str]]) -> list[str]:
    found, waiting = [], list(WANTED)
    while waiting:
        name = waiting.pop()
        if name in found or name not in packages or NEEDLESS.match(name):
            continue
        found.append(name)
        fields = packages[name]
        depends = ", ".join(filter(None, [fields.get("Pre-Depends"), fields.get("Depends")]))
        alternatives = [one.split("|")[0].strip() for one in depends.split(",") if one.strip()]
        waiting += [re.split(r"[ (:]", one)[0] for one in alternatives]
    return found


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    root, python = folder / "root", folder / "python3.14"
    if python.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    packages = index(signed_release(folder))
    if WANTED[0] not in packages:
        raise SystemExit(f"Debian's {SUITE} suite has no {WANTED[0]} any more")
    for name in needed(packages):
        fields = packages[name]
        deb = folder / "package.deb"
        deb.write_bytes(check(get(fields["Filename"]), fields["SHA256"], name))
        subprocess.run(["dpkg-deb", "--extract", deb, root], check=True)
    deb.unlink()
    library = f"{root}/usr/lib/x86_64-linux-gnu"
    loader = next(path for path in [f"{library}/ld-linux-x86-64.so.2", f"{root}/lib64/ld-linux-x86-64.so.2"] if os.path.exists(path))
    python.write_text(
        "#!/bin/sh\n"
        f'export PYTHONHOME="{root}/usr"\n'
        f'exec "{loader}" --library-path "{library}:{root}/lib/x86_64-linux-gnu" "{root}/usr/bin/python3.14" "$@"\n'
    )
    python.chmod(python.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


main()
