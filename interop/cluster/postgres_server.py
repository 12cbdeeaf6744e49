"""A PostgreSQL in a folder of its own, on a Unix socket, from the packages of the system."""

import contextlib
import glob
import os
import pathlib
import shutil
import subprocess
import tempfile


def programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    here = shutil.which("initdb")
    assert found or here, "PostgreSQL is not installed"
    return found[0] if found else os.path.dirname(here)


def run(program, *words, log):
    command = [os.path.join(programs(), program), *words]
    if os.geteuid() == 0:  # it refuses to be root
        command = ["runuser", "-u", "postgres", "--", *command]
    with open(log, "ab") as out:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/")


@contextlib.contextmanager
def started():
    """Yields its URL."""
    folder = tempfile.mkdtemp(prefix="gander-cluster-postgres-")
    data, log = os.path.join(folder, "data"), os.path.join(tempfile.gettempdir(), os.path.basename(folder) + ".log")
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    try:
        run("initdb", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "--username=gander", "--pgdata", data, log=log)
        settings = f"listen_addresses = ''\nunix_socket_directories = '{folder}'\nmax_connections = 100\n"
        pathlib.Path(data, "postgresql.auto.conf").write_text(settings)
        run("pg_ctl", "start", "--wait", "--silent", "--pgdata", data, "--log", os.path.join(folder, "log"), log=log)
        yield f"postgres://gander@localhost/postgres?host={folder}"
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            run("pg_ctl", "stop", "--silent", "--mode=immediate", "--pgdata", data, log=log)
        shutil.rmtree(folder, ignore_errors=True)
        pathlib.Path(log).unlink(missing_ok=True)
