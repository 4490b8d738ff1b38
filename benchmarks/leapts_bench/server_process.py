"""A server in a separate process: start, measure and stop it."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import leapts
from leapts.errors import ConfigError


class ServerProcess:
    """A server under measurement."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self.process = process
        self.id = process.pid
        self.port = port
        self.address = f"http://127.0.0.1:{port}"

    def cpu_seconds(self) -> float:
        """Return the processor time used so far."""
        fields = Path(f"/proc/{self.id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        """Return the memory in use."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.id}/status").read_text())
        assert found is not None
        return int(found[1]) / 1024


@contextmanager
def server_process(*arguments: str, output: int = subprocess.DEVNULL) -> Iterator[ServerProcess]:
    """Start a server and wait until it accepts requests; always stop it.

    Args:
        *arguments: Arguments of Python, from `-m` on; the port is added.
        output: The target of its standard output, as for `subprocess.Popen`.

    Raises:
        ConfigError: When it does not start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = ["--port", str(port)] if "serve" in arguments else [str(port)]
    # Use the code of this process, not an installed version.
    code = os.pathsep.join(str(Path(module).parents[1]) for module in (leapts.__file__, __file__))
    environment = {**os.environ, "PYTHONPATH": code}
    process = subprocess.Popen([sys.executable, *arguments, *given], stdout=output, env=environment)
    try:
        _until_connected(process, port)
        yield ServerProcess(process, port)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _until_connected(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise ConfigError("the server did not start; run leapts serve by hand to see why")
