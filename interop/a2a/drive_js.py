"""Starts gander for the JavaScript client."""

import subprocess
import sys

import house

with house.server(sys.argv[1]) as url:
    subprocess.run(["node", "drive.mjs", url], check=True)
