"""What registries and their tools would refuse, found without publishing anything."""

import hashlib
import json
import os
import pathlib
import re
import sys
import tarfile
import urllib.parse

from steps import attempt, run, the_one

HERE = pathlib.Path(__file__).parent
REGISTRY_PLATFORMS = {f"{system}-{cpu}" for system in ("darwin", "linux", "windows") for cpu in ("aarch64", "x86_64")}


def check_all(packages, work):
    tools = install_tools(work)
    attempt("checksums", lambda: check_checksums(packages))
    attempt("npm-publish", lambda: [run(["npm", "publish", "--dry-run", package]) for package in packages.glob("*.tgz")])
    attempt("twine-check", lambda: run([tools / "twine", "check", "--strict", *packages.glob("*.whl")]))
    attempt("sbom", lambda: check_sbom(packages, tools))
    attempt("registry-entry", lambda: check_registry_entry(packages, tools))
    attempt("homebrew-formula", lambda: check_formula(packages))
    attempt("release-notes", lambda: check_release_notes(packages))


def install_tools(work):
    """Python packages in a folder of their own."""
    folder = work / "python-tools"
    if not (folder / "bin/twine").exists():
        run([sys.executable, "-m", "venv", folder])
        run([folder / "bin/pip", "install", "--quiet", "twine==6.2.0", "cyclonedx-python-lib[json-validation]", "jsonschema"])
    return folder / "bin"


def check_checksums(packages):
    listed = {}
    for line in (packages / "SHA256SUMS").read_text().splitlines():
        expected, name = line.split("  ")
        listed[name] = expected
    names = {file.name for file in packages.iterdir()} - {"SHA256SUMS"}
    if names != set(listed):
        raise RuntimeError(f"without a checksum, or listed and not there: {sorted(names ^ set(listed))}")
    for name, expected in listed.items():
        if hashlib.sha256((packages / name).read_bytes()).hexdigest() != expected:
            raise RuntimeError(f"checksum of {name}")


def check_sbom(packages, tools):
    """CycloneDX's own validator, and that something is in it."""
    validate = (
        "import sys; from cyclonedx.schema import SchemaVersion; from cyclonedx.validation.json import JsonStrictValidator; "
        "error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read()); sys.exit(str(error) if error else 0)"
    )
    run([tools / "python", "-c", validate, packages / "sbom.cdx.json"])
    components = json.loads((packages / "sbom.cdx.json").read_text())["components"]
    if len(components) < 100 or not all(part["purl"] and part["licenses"] for part in components):
        raise RuntimeError("the bill of materials is not whole")


def check_registry_entry(packages, tools):
    """The rules of the ACP registry. With ACP_REGISTRY_SCHEMA, a copy of its agent.schema.json, that too."""
    entry = json.loads((packages / "agent.json").read_text())
    if not re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"]) or not re.fullmatch(r"\d+\.\d+\.\d+", entry["version"]):
        raise RuntimeError(f"id or version: {entry['id']} {entry['version']}")
    if not entry["name"] or not entry["description"] or not set(entry["distribution"]) <= {"binary", "npx", "uvx"}:
        raise RuntimeError(f"fields: {sorted(entry)} {sorted(entry['distribution'])}")
    for platform, target in entry["distribution"]["binary"].items():
        check_registry_binary(packages, platform, target)
    for way in ("npx", "uvx"):
        if not entry["distribution"][way]["package"].endswith("@" + entry["version"]):
            raise RuntimeError(f"{way} is of another version: {entry['distribution'][way]}")
    icon = (packages / "icon.svg").read_text()
    if 'width="16" height="16" viewBox="0 0 16 16"' not in icon or set(re.findall(r'(?:fill|stroke)="([^"]*)"', icon)) != {"currentColor"}:
        raise RuntimeError("the icon is not 16 by 16 in the client's colour")
    schema = os.environ.get("ACP_REGISTRY_SCHEMA")
    if schema:
        validate = "import json, sys, jsonschema; jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))"
        run([tools / "python", "-c", validate, packages / "agent.json", schema])


def check_registry_binary(packages, platform, target):
    if platform not in REGISTRY_PLATFORMS or not set(target) <= {"archive", "sha256", "cmd", "args", "env"}:
        raise RuntimeError(f"{platform}: {sorted(target)}")
    archive = packages / pathlib.PurePosixPath(urllib.parse.urlparse(target["archive"]).path).name
    if hashlib.sha256(archive.read_bytes()).hexdigest() != target["sha256"]:
        raise RuntimeError(f"{platform}: another archive than {archive.name}")
    with tarfile.open(archive) as files:
        if not files.getmember(target["cmd"].removeprefix("./")).mode & 0o100:
            raise RuntimeError(f"{platform}: {target['cmd']} is not a program")


def check_formula(packages):
    """Ruby reads it, and its steps find in the tarballs what they install."""
    for cpu, name in (("intel", "x64"), ("arm", "arm64")):
        if list(packages.glob(f"gander-*-linux-{name}.tar.gz")):
            run(["ruby", HERE / "formula.rb", packages / "gander.rb", cpu, the_one(packages, f"gander-*-linux-{name}.tar.gz")])


def check_release_notes(packages):
    notes = (packages / "RELEASE-NOTES.md").read_text()
    if len(notes.splitlines()) < 3 or re.search(r"^## ", notes, re.M):
        raise RuntimeError(f"not one version's part of the changelog: {notes[:200]}")
