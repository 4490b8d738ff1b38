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
from safetensors import SafetensorError
from torch import Tensor

from leapts.config import ModelConfig, TrainingConfig
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.errors import LeapTSError, ModelFileError
from leapts.files import write_folder
from leapts.forecasting.auto_config import AutoConfig
from leapts.forecasting.intervals import ConformalScores
from leapts.forecasting.predictor import Predictor
from leapts.messages import quoted
from leapts.model.build import build_model
from leapts.persistence.model_card import model_card
from leapts.persistence.schema import (
    Contents,
    laid_out,
    max_config_bytes,
    parse,
    regular_file,
    require_numbers,
    require_shapes,
    with_current_names,
)
from leapts.registration import missing_kind
from leapts.training.early_stopping import TrainingReport

SCHEMA = 2
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"


def save(fitted: Predictor, params: dict[str, Any], path: Path) -> None:
    """Write a fitted model, instead of the model that may be there.

    Raises:
        ModelFileError: When something else than a model is in the way, or the folder above is missing.
    """
    require_place(path)
    weights = safetensors.torch.save({name: value.contiguous() for name, value in _tensors(fitted).items()})
    tail = fitted.tail
    config = {
        "schema": SCHEMA,
        "params": params,
        "model": fitted.config.model_dump(mode="json"),
        "training": fitted.training.model_dump(mode="json"),
        "clusters": fitted.clusters,
        "pad_short": fitted.pad_short,
        "data": {
            "series": list(tail.series),
            "freq": tail.freq,
            "zone": tail.timezone,
            "style": asdict(tail.style),
            "stamps": str(tail.first.dtype),
        },
        "report": fitted.report.to_dict(),
        "auto_config": [asdict(one) for one in fitted.auto_config],
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    config["sha256"] = _digest(config)
    content = laid_out(config)
    if len(content) > max_config_bytes(len(weights)):
        longest = max(map(str, tail.series), key=len)
        raise ModelFileError(
            f"the names of the {len(tail)} series are too long to be kept (the longest, {quoted(longest)}, has "
            f"{len(longest):,} characters); give them shorter ones, and fit again"
        )
    write_folder(path, {CONFIG: content, WEIGHTS: weights, CARD: model_card(fitted).encode()})


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


def load(path: Path) -> tuple[Predictor, dict[str, Any]]:
    """Read a fitted model and the options it was made with.

    Raises:
        ModelFileError: Naming the file and what is wrong with it.
    """
    config = _read_config(path)
    weights = regular_file(path / WEIGHTS)
    if hashlib.sha256(weights).hexdigest() != config.get("weights_sha256"):
        raise ModelFileError(f"{path / WEIGHTS} is damaged, or belongs to another model; copy the folder again")
    try:
        contents = Contents.model_validate_json(laid_out(with_current_names(config)))
        return _fitted(contents, safetensors.torch.load(weights)), contents.params
    except (SafetensorError, LeapTSError, ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
        if missing := missing_kind(config.get("model")):
            raise ModelFileError(f"{path}: {missing}") from error
        why = " ".join(str(error).split())[:200]
        raise ModelFileError(f"{path} does not hold together as a model ({why}); fit or copy it again") from error


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise ModelFileError(f"{path} {what}; give the folder that a fit wrote")
    file = path / CONFIG
    weights = path / WEIGHTS
    content = regular_file(file, max_config_bytes(weights.stat().st_size if weights.is_file() else 0))
    config = parse(content, file)
    if config["schema"] > SCHEMA:
        raise ModelFileError(
            f"{path} was written by a newer LeapTS (schema {config['schema']}, this one knows {SCHEMA}); upgrade leapts"
        )
    # Values that are the same but laid out otherwise, or given twice, are damage too.
    is_whole = laid_out(config) == content
    if config.pop("sha256", None) != _digest(config) or not is_whole:
        raise ModelFileError(f"{file} is damaged, or was changed by hand; copy the folder again")
    return config


def _digest(config: dict[str, Any]) -> str:
    """Of the configuration without its own digest, however it is laid out."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def _tensors(fitted: Predictor) -> dict[str, Tensor]:
    tensors = {f"model.{name}": value for name, value in fitted.model.state_dict().items()}
    tensors |= {"scaler.mean": fitted.scaler.mean, "scaler.deviation": fitted.scaler.std}
    tensors |= {"tail.values": fitted.tail.values, "tail.offsets": fitted.tail.offsets}
    tensors["tail.first"] = torch.from_numpy(fitted.tail.first.astype("int64"))
    if fitted.tail.start_offsets is not None:
        tensors["tail.skipped"] = torch.from_numpy(fitted.tail.start_offsets)
    if fitted.scores is not None:
        tensors |= {f"scores.{name}": value for name, value in fitted.scores.to_tensors().items()}
    return tensors


def _fitted(contents: Contents, tensors: dict[str, Tensor]) -> Predictor:
    config, data, clusters = ModelConfig(**contents.model), contents.data, contents.clusters
    require_shapes(tensors, config, contents)
    require_numbers(tensors, config.input_size)
    model = build_model(config, seed=0, clusters=clusters).float()
    model.load_state_dict(_under("model.", tensors))
    scores = _under("scores.", tensors)
    first: np.ndarray[Any, Any] = tensors["tail.first"].numpy()
    skipped = tensors.get("tail.skipped")
    return Predictor(
        config=config,
        training=TrainingConfig(**contents.training),
        model=model,
        clusters=clusters,
        scaler=Scaler(tensors["scaler.mean"], tensors["scaler.deviation"]),
        tail=Panel(
            values=tensors["tail.values"],
            offsets=tensors["tail.offsets"],
            series=data.series,
            first=first.astype(data.stamps),
            freq=data.freq,
            timezone=data.zone,
            style=data.style,
            start_offsets=None if skipped is None else skipped.numpy(),
        ),
        pad_short=contents.pad_short,
        report=TrainingReport.from_dict(contents.report),
        auto_config=AutoConfig(contents.auto_config),
        scores=ConformalScores.from_tensors(scores) if scores else None,
    )


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
