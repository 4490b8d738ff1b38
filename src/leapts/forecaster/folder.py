"""A model as a folder: `config.json`, `model.safetensors`, and a card for people. No pickle.

The configuration carries a digest of the weights and one of itself, so that a damaged or mixed folder is refused rather
than believed. The folder is put in place in one move.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from pydantic_core import to_jsonable_python
from safetensors import SafetensorError
from torch import Tensor

from leapts.assembly import build_model
from leapts.config import ModelConfig, TrainingConfig
from leapts.data.panel import FrameStyle, Panel
from leapts.data.scaling import Scaler
from leapts.errors import LeapTSError, ModelFileError
from leapts.files import write_folder
from leapts.forecaster.card import model_card
from leapts.forecaster.fitted import Fitted
from leapts.forecaster.picking import Pick
from leapts.intervals import ConformalScores
from leapts.training import TrainingReport

SCHEMA = 1
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"


def save(fitted: Fitted, params: dict[str, Any], path: Path) -> None:
    """Write a fitted model, instead of the model that may be there.

    Raises:
        ModelFileError: When something else than a model is in the way, or the folder above is missing.
    """
    require_place(path)
    weights = safetensors.torch.save({name: value.contiguous() for name, value in _tensors(fitted).items()})
    tail = fitted.tail
    config = {
        "schema": SCHEMA,
        "params": to_jsonable_python(params, fallback=lambda number: number.item()),
        "model": fitted.config.model_dump(mode="json"),
        "training": fitted.training.model_dump(mode="json"),
        "clusters": fitted.clusters,
        "pad_short": fitted.pad_short,
        "data": {
            "series": list(tail.series),
            "freq": tail.freq,
            "zone": tail.zone,
            "style": asdict(tail.style),
            "stamps": str(tail.first.dtype),
        },
        "report": fitted.report.to_dict(),
        "picks": [asdict(pick) for pick in fitted.picks],
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    config["sha256"] = _digest(config)
    text = json.dumps(config, indent=1, ensure_ascii=False)
    card = model_card(fitted)
    write_folder(path, {CONFIG: text.encode(), WEIGHTS: weights, CARD: card.encode()})


def require_place(path: Path) -> None:
    """Refuse a path no model can be written to, so that one need not train first to find out.

    Raises:
        ModelFileError: When something else than a model is in the way, or the folder above is missing.
    """
    if path.exists() and not _is_model(path) and not _is_empty(path):
        raise ModelFileError(f"{path} exists and is not a model folder; choose another name, or remove it")
    if not path.parent.is_dir():
        raise ModelFileError(f"the folder {path.parent} does not exist; make it first")


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _is_model(path: Path) -> bool:
    """Whether a folder is one of ours through and through, so that replacing it can lose nothing else."""
    try:
        names = {file.name for file in path.iterdir()}
        config = json.loads((path / CONFIG).read_bytes())
    except (OSError, ValueError):
        return False
    return names <= {CONFIG, WEIGHTS, CARD} and isinstance(config, dict) and "weights_sha256" in config


def load(path: Path) -> tuple[Fitted, dict[str, Any]]:
    """Read a fitted model and the options it was made with.

    Raises:
        ModelFileError: Naming the file and what is wrong with it.
    """
    config = _read_config(path)
    weights = _read(path / WEIGHTS)
    if hashlib.sha256(weights).hexdigest() != config["weights_sha256"]:
        raise ModelFileError(f"{path / WEIGHTS} is damaged, or belongs to another model; copy the folder again")
    try:
        return _fitted(config, safetensors.torch.load(weights)), config["params"]
    except (SafetensorError, LeapTSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ModelFileError(f"{path} does not hold together as a model ({error}); fit or copy it again") from error


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise ModelFileError(f"{path} {what}; give the folder that a fit wrote")
    file = path / CONFIG
    try:
        config: Any = json.loads(_read(file))
    except ValueError as error:
        raise ModelFileError(f"{file} is not JSON ({error}); copy the folder again") from error
    schema = config.get("schema") if isinstance(config, dict) else None
    if not isinstance(config, dict) or not isinstance(schema, int):
        raise ModelFileError(f"{file} is not a LeapTS configuration; give the folder that a fit wrote")
    if schema > SCHEMA:
        raise ModelFileError(
            f"{path} was written by a newer LeapTS (schema {schema}, this one knows {SCHEMA}); upgrade leapts"
        )
    if config.pop("sha256", None) != _digest(config):
        raise ModelFileError(f"{file} is damaged, or was changed by hand; copy the folder again")
    return config


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise ModelFileError(f"{file} cannot be read ({reason}); give the folder that a fit wrote") from error


def _digest(config: dict[str, Any]) -> str:
    """Of the configuration without its own digest, however it is laid out."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def _tensors(fitted: Fitted) -> dict[str, Tensor]:
    tensors = {f"model.{name}": value for name, value in fitted.model.state_dict().items()}
    tensors |= {"scaler.mean": fitted.scaler.mean, "scaler.deviation": fitted.scaler.deviation}
    tensors |= {"tail.values": fitted.tail.values, "tail.offsets": fitted.tail.offsets}
    tensors["tail.first"] = torch.from_numpy(fitted.tail.first.astype("int64"))
    if fitted.scores is not None:
        tensors |= {f"scores.{name}": value for name, value in fitted.scores.to_tensors().items()}
    return tensors


def _fitted(config: dict[str, Any], tensors: dict[str, Tensor]) -> Fitted:
    model_config, data = ModelConfig(**config["model"]), config["data"]
    clusters = None if config["clusters"] is None else tuple(config["clusters"])
    model = build_model(model_config, seed=0, clusters=clusters).float()
    model.load_state_dict(_under("model.", tensors))
    scores = _under("scores.", tensors)
    first: np.ndarray[Any, Any] = tensors["tail.first"].numpy()
    return Fitted(
        config=model_config,
        training=TrainingConfig(**config["training"]),
        model=model,
        clusters=clusters,
        scaler=Scaler(tensors["scaler.mean"], tensors["scaler.deviation"]),
        tail=Panel(
            values=tensors["tail.values"],
            offsets=tensors["tail.offsets"],
            series=tuple(data["series"]),
            first=first.astype(data["stamps"]),
            freq=data["freq"],
            zone=data["zone"],
            style=FrameStyle(**data["style"]),
        ),
        pad_short=config["pad_short"],
        report=TrainingReport.from_dict(config["report"]),
        picks=tuple(Pick(**pick) for pick in config["picks"]),
        scores=ConformalScores.from_tensors(scores) if scores else None,
    )


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
