"""Malicious model folders with correct digests.

Digests detect damage, not intent, so every forgery here has correct ones. Each is read in a fork of this process under
an audit hook: nothing may be imported, run, opened for writing or connected to, and a refusal must be fast and use
little memory.
"""

import copy
import hashlib
import json
import math
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd
import safetensors.torch
import torch

from leapts import LeapTS, LeapTSError, ModelFileError
from leapts.forecasting.zero_shot import WEIGHTS as PRETRAINED
from leapts.forecasting.zero_shot import load_universal
from leapts.persistence.save import CARD, CONFIG, WEIGHTS, _digest
from leapts_qa.forks import in_fork
from leapts_qa.outcome import Outcome
from leapts_qa.samples import forecaster, waves

UNITS = ("options", "tensors", "files", "pretrained weights")
MAX_SECONDS, MAX_MEGABYTES = 1.0, 200.0

Break = Callable[[Path], None]

_HARMFUL = (
    *("import", "exec", "compile", "subprocess.", "os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork"),
    *("socket.", "ctypes.", "pickle.", "shutil.", "os.remove", "os.rename", "os.mkdir", "os.chmod", "code."),
)

_NASTY: tuple[Any, ...] = (
    "os.system",
    "../../../../etc/passwd",
    "__import__('os').system('id')",
    -1,
    0,
    2**62,
    1e308,
    math.nan,
    True,
    None,
    [],
    {},
    [[[[[[1]]]]]],
    "V2000000000",
    "999999999999D",
    2**63 - 1,
    {"kind": "os.system", "py/object": "os.system"},
)

# Timezone names that refer to a file, to a module, or to nothing.
_TIMEZONES = (
    *("dateutil//etc/passwd", "dateutil/Europe/Berlin", "/etc/passwd", "/usr/share/zoneinfo/UTC", "tzlocal()"),
    *("../../../etc/passwd", "Europe/../../passwd", "Europe", "Europe/Nowhere", "os", "antigravity", "zones", "tzdata"),
    *("posixrules", "leapseconds", "+99:99", "UTC+25:00", "UTC\n", "Europe/Berlin\0", "a" * 100_000, "a/" * 50_000, ""),
)


# Fields that are unknown, repeated, empty or at odds with others.
_FORGED: tuple[tuple[tuple[str, ...], Any], ...] = (
    *(((*path, "another"), 1) for path in ((), ("data",), ("data", "style"), ("model",), ("training",), ("report",))),
    *((("data", "series"), names) for names in (["a", "a"], ["", "b"], [1, True], ["a", 1], [1, 2**64])),
    *((("params", "alias"), name) for name in ("unique_id", "ds", "y", "")),
    *((("schema",), version) for version in (-5, 0, True, 1, 2, 99, "3", 3.0)),
    *(
        (("model", "quantiles"), levels)
        for levels in ([0.5], [0.9, 0.5, 0.1], [0.5, 0.5], [1e-300, 0.5], [0.1, 0.5, 2])
    ),
    *((("model", "quantiles"), levels) for levels in ([n / 1000 for n in range(1, 1000)], [math.nan, 0.5], [[0.5]])),
    *((("model", name), True) for name in ("mask", "lookback_pooling", "linear_path", "point", "series_embedding")),
    *((("params", "support"), limits) for limits in ([1, 0], [0, 1e308], [math.nan, 1], "1,0", [0, 1, 2])),
    (("data", "style", "time_col"), "unique_id"),
    (("data", "style", "time_type"), "int65"),
)
_NOT_PLAIN = ("pydantic", "validation error", "input should", "input_value", "traceback")


def run(unit: str, folder: Path) -> Outcome:
    """Create every forgery of a unit, and read it."""
    good = folder / "good"
    forecaster().fit(waves()).save(good)
    LeapTS.load(good).predict(level=[80], n_samples=2)  # import everything first
    outcome = Outcome()
    for number, (name, harm) in enumerate(_cases(unit, good)):
        target = folder / str(number)
        target.mkdir()
        for file in good.iterdir():
            (target / file.name).write_bytes(file.read_bytes())
        harm(target)
        judge(name, target, outcome)
    return outcome


def judge(name: str, target: Path, outcome: Outcome) -> None:
    """Read one folder, or its weights of LeapTS-Zero; they must be refused, or forecast numbers."""
    attempt = _attempt_weights if (target / PRETRAINED.name).exists() else _attempt
    ended = in_fork(partial(attempt, target), seconds=20)
    if ended.hung or ended.signal:
        outcome.fail(f"{name}: {'hung' if ended.hung else f'killed by signal {ended.signal}'}")
        return
    if ended.error:
        outcome.fail(f"{name}: {ended.error.strip().splitlines()[-1]}")
        return
    outcome.most("s of processor time", ended.cpu)
    outcome.most("MB of memory", ended.megabytes)
    if ended.value["events"]:
        outcome.fail(f"{name}: {ended.value['events'][:3]}")
    elif ended.cpu > MAX_SECONDS or ended.megabytes > MAX_MEGABYTES:
        outcome.fail(f"{name}: took {ended.cpu:.2f} s and {ended.megabytes:.0f} MB")
    elif not ended.value["good"]:
        outcome.fail(f"{name}: {ended.value['end']}")
    else:
        outcome.count(ended.value["end"])


def _attempt(target: Path) -> dict[str, Any]:
    events: list[str] = []
    sys.addaudithook(partial(_watch, events))
    try:
        model = LeapTS.load(target)
    except ModelFileError as error:
        text = str(error)
        is_plain = "\n" not in text and ";" in text and not any(phrase in text.lower() for phrase in _NOT_PLAIN)
        return {
            "end": "refused" if is_plain else f"a message without a cure, or not in plain words: {error}",
            "good": is_plain,
            "events": events,
        }
    try:
        forecast = model.predict(level=[80, 99.9], n_samples=2)
    except LeapTSError:
        return {"end": "refused at predict", "good": True, "events": events}
    is_finite = isinstance(forecast, pd.DataFrame) and bool(forecast.iloc[:, 2:].map(math.isfinite).all(axis=None))
    end = "harmless, finite forecast" if is_finite else "forecasts no numbers"
    return {"end": end, "good": is_finite, "events": events}


def _attempt_weights(target: Path) -> dict[str, Any]:
    events: list[str] = []
    sys.addaudithook(partial(_watch, events))
    try:
        network = load_universal(target / PRETRAINED.name)
    except ModelFileError as error:
        is_plain = "\n" not in str(error)
        return {"end": "refused" if is_plain else f"more than one line: {error}", "good": is_plain, "events": events}
    is_finite = bool(network.forecast(torch.arange(24.0).view(2, 12), 3).values.isfinite().all())
    return {"end": "harmless, finite forecast" if is_finite else "forecasts no numbers", "good": True, "events": events}


def _watch(events: list[str], event: str, arguments: tuple[Any, ...]) -> None:
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if (writes or event.startswith(_HARMFUL)) and not _checks_shapes():
        # Remove the path of this environment.
        events.append(f"{event} {arguments!r}".replace(f"{sys.prefix}/", "")[:100])


def _checks_shapes() -> bool:
    """Check whether an event comes from shape checks, which compile code and are enabled in tests only."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("jaxtyping"):
        frame = frame.f_back
    return frame is not None


def _cases(unit: str, good: Path) -> Iterator[tuple[str, Break]]:
    if unit == "options":
        config = json.loads((good / CONFIG).read_text())
        for path in _paths({name: value for name, value in config.items() if name not in ("sha256", "weights_sha256")}):
            for value in _NASTY:
                yield f"{'.'.join(map(str, path))}={value!r:.40}", partial(_forge_option, path=path, value=value)
            yield f"{'.'.join(map(str, path))} left out", partial(_forge_option, path=path, value=_LEFT_OUT)
        for path, value in _FORGED:
            yield f"{'.'.join(path)}={value!r:.40}", partial(_forge_option, path=path, value=value)
        for timezone in _TIMEZONES:
            yield f"data.timezone={timezone!r:.40}", partial(_forge_option, path=("data", "timezone"), value=timezone)
    elif unit == "tensors":
        for name in safetensors.torch.load_file(good / WEIGHTS):
            for how in _TENSOR_HARMS:
                yield f"{name} {how}", partial(_forge_tensor, name=name, how=how)
        for name, shape in _SHAPES.items():
            yield f"{name} of shape {shape}", partial(_reshape_tensor, name=name, shape=shape)
    elif unit == "pretrained weights":
        for name in list(safetensors.torch.load_file(PRETRAINED))[::3]:
            for how in _TENSOR_HARMS:
                yield f"{name} {how}", partial(_forge_pretrained, name=name, how=how)
        for name, harm in _FILE_HARMS.items():
            if name.startswith((WEIGHTS, "a header of")):
                yield name, partial(_spoil_pretrained, harm=harm)
    else:
        yield from _FILE_HARMS.items()


_LEFT_OUT = object()


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """List the paths of all values and containers in JSON."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, item in inside:
        yield from _paths(item, (*path, key))


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Write a configuration with correct digests, in the format of `save`."""
    config = {name: value for name, value in config.items() if name not in ("sha256", "weights_sha256")}
    config["weights_sha256"] = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    config["sha256"] = _digest(config)
    (folder / CONFIG).write_bytes(json.dumps(config, indent=1, ensure_ascii=False).encode())


def _forge_option(folder: Path, *, path: tuple[Any, ...], value: Any) -> None:
    config = json.loads((folder / CONFIG).read_text())
    holder = config
    for key in path[:-1]:
        holder = holder[key]
    if value is _LEFT_OUT:
        del holder[path[-1]]
    else:
        holder[path[-1]] = copy.deepcopy(value)
    write_config(folder, config)


def _as_is(value: torch.Tensor) -> torch.Tensor:
    return value


_TENSOR_HARMS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "missing": lambda _: None,
    "falling": lambda x: x.flip(-1),
    "not a number": lambda x: torch.full(x.shape, torch.nan, dtype=torch.float64).to(x.dtype),
    "infinite": lambda x: torch.full(x.shape, 1e39, dtype=torch.float64).to(x.dtype),
    "negative": lambda x: torch.full(x.shape, -1e9, dtype=torch.float64).to(x.dtype),
    "of another type": lambda x: x.to(torch.float16 if x.is_floating_point() else torch.float64),
    "with another axis": lambda x: x[None].contiguous(),
    "flat": lambda x: torch.cat([x.reshape(-1), x.reshape(-1)]),
    "empty": lambda x: x.reshape(-1)[:0].clone(),
    "of huge numbers": lambda x: torch.full(x.shape, 2**62 if not x.is_floating_point() else 1e30).to(x.dtype),
    "beyond any number": lambda x: torch.full_like(
        x, 2**63 - 1 if not x.is_floating_point() else torch.finfo(x.dtype).max
    ),
}


def _forge_tensor(folder: Path, *, name: str, how: str) -> None:
    tensors = safetensors.torch.load_file(folder / WEIGHTS)
    changed = _TENSOR_HARMS[how](tensors.pop(name))
    if changed is not None:
        tensors[name] = changed
    _put_weights(folder, safetensors.torch.save(tensors))


# More groups, windows, steps or series than the model has; none of them.
_SHAPES = {
    "calibration.offsets": (1000, 3, 13),
    "calibration.usual": (0, 3),
    "calibration.windows": (0,),
    "calibration.scores": (1_000_000, 1, 3),
    "support.lower": (1,),
    "support.whole": (2_000_000,),
}


def _reshape_tensor(folder: Path, *, name: str, shape: tuple[int, ...]) -> None:
    tensors = safetensors.torch.load_file(folder / WEIGHTS)
    tensors[name] = torch.zeros(shape, dtype=tensors[name].dtype)
    _put_weights(folder, safetensors.torch.save(tensors))


def _forge_pretrained(folder: Path, *, name: str, how: str) -> None:
    tensors = safetensors.torch.load_file(PRETRAINED)
    changed = _TENSOR_HARMS[how](tensors.pop(name))
    safetensors.torch.save_file(tensors | ({} if changed is None else {name: changed}), folder / PRETRAINED.name)


def _spoil_pretrained(folder: Path, *, harm: Break) -> None:
    harm(folder)
    (folder / WEIGHTS).rename(folder / PRETRAINED.name)


def _add_tensor(folder: Path, *, name: str) -> None:
    tensors = safetensors.torch.load_file(folder / WEIGHTS)
    _put_weights(folder, safetensors.torch.save({**tensors, name: torch.zeros(1)}))


def _put_weights(folder: Path, content: bytes) -> None:
    (folder / WEIGHTS).write_bytes(content)
    write_config(folder, json.loads((folder / CONFIG).read_text()))


def _header(folder: Path, header: bytes, data: bytes = b"") -> None:
    _put_weights(folder, len(header).to_bytes(8, "little") + header + data)


def _instead(name: str, make: Callable[[Path], object]) -> Break:
    def harm(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return harm


def _text(name: str, content: bytes) -> Break:
    def harm(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return harm


def _sparse(name: str, size: int) -> Break:
    return lambda folder: os.truncate(folder / name, size)


def _renamed_pickle(name: str) -> Break:
    class Harm:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, ("touch harmed",)

    return _text(name, pickle.dumps(Harm()))


def _repeated_key(folder: Path) -> None:
    text = (folder / CONFIG).read_text()
    (folder / CONFIG).write_text(text.replace('"schema": ', '"schema": 7,\n "schema": ', 1))


def _overflowing(shape: list[int], end: int) -> Break:
    entry = {"model.head.weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}}
    return lambda folder: _header(folder, json.dumps(entry).encode(), b"\0" * min(end, 64))


_FILE_HARMS: dict[str, Break] = {
    **{f"{name} is a FIFO": _instead(name, os.mkfifo) for name in (CONFIG, WEIGHTS, CARD)},
    **{f"{name} is a folder": _instead(name, Path.mkdir) for name in (CONFIG, WEIGHTS, CARD)},
    **{
        f"{name} is a link to {there}": _instead(name, partial(Path.symlink_to, target=there))
        for name in (CONFIG, WEIGHTS)
        for there in ("/dev/zero", "/dev/stdin", "/etc/passwd", "/proc/self/mem", "/proc/kcore", name, "../../nowhere")
    },
    **{f"{name} is a renamed pickle": _renamed_pickle(name) for name in (CONFIG, WEIGHTS)},
    **{f"{name} is 100 GB long": _sparse(name, 100 * 10**9) for name in (CONFIG, WEIGHTS)},
    **{f"{name} is 2 GB long": _sparse(name, 2 * 10**9) for name in (CONFIG, WEIGHTS)},
    **{f"{name} is empty": _sparse(name, 0) for name in (CONFIG, WEIGHTS)},
    "deep lists": _text(CONFIG, b"[" * 500_000),
    "deep objects": _text(CONFIG, b'{"a":' * 200_000),
    "deep and closed": _text(CONFIG, b"[" * 100_000 + b"]" * 100_000),
    "a number of 100,000 digits": _text(CONFIG, b'{"schema": ' + b"9" * 100_000 + b"}"),
    "many small lists": _text(CONFIG, b"[" + b"[]," * 2_600_000 + b"[]]"),
    "a key given twice": _repeated_key,
    **{f"a tensor {name}": partial(_add_tensor, name=name) for name in ("another", "scores.another", "model.another")},
    "a mark at the start": lambda folder: _text(CONFIG, b"\xef\xbb\xbf" + (folder / CONFIG).read_bytes())(folder),
    "UTF-16": lambda folder: _text(CONFIG, (folder / CONFIG).read_text().encode("utf-16"))(folder),
    **{f"a header of {size} bytes": _text(WEIGHTS, size.to_bytes(8, "little")) for size in (2**31, 2**63, 2**64 - 1)},
    "a header that is no JSON": partial(_header, header=b"{" * 64),
    "a header of lists": partial(_header, header=b"[" * 4096),
    "a header with metadata that is a list": partial(_header, header=b'{"__metadata__": [1]}'),
    **{
        f"a tensor of shape {shape}": _overflowing(shape, end)
        for shape in ([2**32, 2**32], [2**63], [2**31, 2], [0, 2**62], [-1, 4], [7, 4])
        for end in (0, 16, 2**40, 2**63)
    },
}
