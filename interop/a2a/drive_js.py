"""Starts gander for the JavaScript client."""

import subprocess
import sys

import house

with house.conformance(sys.argv[1]) as server:
    subprocess.run(["node", "drive.mjs", server.url, server.token()], check=True)
