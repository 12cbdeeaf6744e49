from . import agent  # noqa: F401: this is how adk finds it
