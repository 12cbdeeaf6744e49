"""`adk api_server` with one agent and everything in memory. Usage: serve_adk.py PORT"""

import os
import sys

from google.adk.cli import main

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "adk_agents")
sys.argv = ["adk", "api_server", "--host", "127.0.0.1", "--port", sys.argv[1], "--log_level", "error"]
sys.argv += ["--session_service_uri", "memory://", "--artifact_service_uri", "memory://", folder]
main()
