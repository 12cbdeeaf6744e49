"""Starts gander for the JavaScript client."""

import subprocess
import sys

import gander_server

with gander_server.conformance(sys.argv[1]) as server:
    subprocess.run(["node", "drive.mjs", server.url, server.token()], check=True)
