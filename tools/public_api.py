"""Collect what users can depend on: exports, options, commands and flags, and the fields of JSON.

python tools/public_api.py    rewrites tests/public_api.toml from the code as it is
"""

import inspect
import io
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w

TARGET = Path(__file__).parents[1] / "tests" / "public_api.toml"
SERVER_SECONDS = 60
HEADER = "# What users can depend on. Rewrite with: make public-api. A name that goes needs a deprecation first.\n"


def main() -> None:
    """Rewrite the stored interface."""
    TARGET.write_text(HEADER + tomli_w.dumps(collect()))


def collect() -> dict[str, Any]:
    """Everything public, as nested tables of sorted names."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outputs = json_outputs(folder)
        return {
            "exports": exports(),
            "options": options(),
            "methods": methods(),
            "commands": commands(),
            "json_outputs": outputs,
            "model_folder": model_folder(folder / "model"),
            "server": server(folder / "model"),
        }


def exports() -> list[str]:
    """Names that `leapts` exports."""
    import leapts

    return sorted(leapts.__all__)


def options() -> dict[str, list[str]]:
    """Option names of the estimator and of each group of options."""
    from leapts import LeapTS
    from leapts.config import ModelConfig, ReadOptions, TrainingConfig

    return {
        "LeapTS": sorted(inspect.signature(LeapTS).parameters),
        "ModelConfig": sorted(ModelConfig.model_fields),
        "TrainingConfig": sorted(TrainingConfig.model_fields),
        "ReadOptions": sorted(ReadOptions.model_fields),
    }


def methods() -> dict[str, list[str]]:
    """Public methods and properties of `LeapTS`, each with its parameters."""
    from leapts import LeapTS

    found = {name: value for name, value in inspect.getmembers_static(LeapTS) if not name.startswith("_")}
    return {name: _parameters(getattr(value, "__func__", value)) for name, value in found.items()}


def _parameters(method: Any) -> list[str]:
    named = inspect.signature(method).parameters if inspect.isfunction(method) else ()
    return sorted(name for name in named if name not in ("self", "cls"))


def commands() -> dict[str, list[str]]:
    """Flags and arguments of every command."""
    import typer.main

    from leapts.cli.app import app

    return {" ".join(["leapts", *words]): flags for words, flags in _commands(typer.main.get_command(app), ())}


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    hidden = ("install_completion", "show_completion")  # there only where a shell is found
    shown = [one for one in command.params if not getattr(one, "hidden", False) and one.name not in hidden]
    yield words, sorted(name for one in shown for name in (*one.opts, *one.secondary_opts))
    for name, below in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(below, (*words, name))


def json_outputs(folder: Path) -> dict[str, list[str]]:
    """Fields of every command's `--json`, from running it on the bundled weather; leaves a model in the folder."""
    data, older, model = folder / "weather.csv", folder / "older.csv", folder / "model"
    data.write_bytes((resources.files("leapts.datasets") / "bundled" / "seattle_weather.csv").read_bytes())
    older.write_bytes(b"".join(data.read_bytes().splitlines(keepends=True)[:-30]))
    short = [str(older), "--horizon", "3", "--input-size", "6", "--max-steps", "2"]
    runs = {
        "fit": ["fit", *short, "--out", str(model)],
        "predict": ["predict", str(model)],
        "backtest": ["backtest", *short, "--windows", "1"],
        "evaluate": ["evaluate", str(model), str(data)],
        "detect": ["detect", str(model), str(data), "--alert-rate", "0.9"],
        "report": ["report", str(model), str(data), "-o", str(folder / "report.html")],
        "analyse": ["analyse", str(model), str(data)],
        "export": ["export", str(model), "--format", "pt2", "--out", str(folder / "model.pt2")],
        "datasets list": ["datasets", "list"],
        "datasets make": ["datasets", "make", "Scenario1", "--out", str(folder / "scenario.csv")],
    }
    return {name: fields(json.loads(_printed([*arguments, "--json"]))) for name, arguments in runs.items()}


def fields(value: Any, prefix: str = "") -> list[str]:
    """Names of all fields of a JSON value; a list is described by its first item."""
    if isinstance(value, list):
        return fields(value[0], f"{prefix}[]") if value else []
    if not isinstance(value, dict):
        return []
    found = set()
    for name, inner in value.items():
        place = f"{prefix}.{name}" if prefix else str(name)
        found |= {place, *fields(inner, place)}
    return sorted(found)


def model_folder(model: Path) -> dict[str, list[str]]:
    """Files of a model folder, and the fields of its `config.json`."""
    config = json.loads((model / "config.json").read_text())
    return {"files": sorted(path.name for path in model.iterdir()), "config": fields(config)}


def server(model: Path) -> dict[str, list[str]]:
    """Endpoints of a running server with their methods, and the fields of its schemas."""
    with _serving(model) as address:
        described = json.loads(urllib.request.urlopen(f"{address}/openapi.json").read())
    found = {
        "endpoints": sorted(f"{verb.upper()} {path}" for path, verbs in described["paths"].items() for verb in verbs)
    }
    schemas = described["components"]["schemas"]
    return found | {name: sorted(schema.get("properties", {})) for name, schema in sorted(schemas.items())}


@contextmanager
def _serving(model: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = [sys.executable, "-m", "leapts", "serve", str(model), "--port", str(port)]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + SERVER_SECONDS
        while not _is_ready(address):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("leapts serve did not start")
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait()


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/readyz") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _printed(arguments: list[str]) -> str:
    from leapts.cli.app import run

    buffer = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(buffer, encoding="utf-8")) as output:
        code = run(arguments)
        output.flush()
        text = buffer.getvalue().decode()
    if code != 0:
        raise RuntimeError(f"leapts {' '.join(arguments)} ended with {code}")
    return text


if __name__ == "__main__":
    main()
