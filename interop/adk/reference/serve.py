"""`adk api_server` with one agent and everything in memory, to be measured beside ours. Usage: serve.py PORT"""

import os
import sys

from google.adk.cli import main

sys.argv = ["adk", "api_server", "--host", "127.0.0.1", "--port", sys.argv[1], "--log_level", "error"]
sys.argv += ["--session_service_uri", "memory://", "--artifact_service_uri", "memory://"]
sys.argv.append(os.path.dirname(os.path.abspath(__file__)))
main()
