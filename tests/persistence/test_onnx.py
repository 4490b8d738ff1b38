"""An exported graph forecasts what the model forecasts, in the same leaps."""

import csv
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leapts import ConfigError, LeapTS
from leapts.persistence.onnx import METADATA, export_model, exported_program
from tests.forecasting.frames import LOOKBACK, H, make_forecaster, make_frame

pytestmark = pytest.mark.usefixtures("unchecked_shapes")

WINDOWS = 1000
Outputs = dict[str, torch.Tensor]


def made(seed: int = 0, **options: Any) -> LeapTS:
    """A model whose weights are spread out, so that its rows disagree about their schedules."""
    model = make_forecaster(max_steps=2, model={"hidden_size": 8, "linear_path": False, **options}).fit(
        make_frame(seed=seed)
    )
    with torch.no_grad():
        for parameter in model.predictor_.model.parameters():
            parameter.mul_(2.5)
    return model


def histories(model: LeapTS, count: int = WINDOWS) -> torch.Tensor:
    """Random walks and noise, half and half."""
    noise = torch.randn(
        count, model.predictor_.config.n_series or 1, LOOKBACK, generator=torch.Generator().manual_seed(5)
    )
    noise[::2] = noise[::2].cumsum(2)
    return noise


def assert_same(model: LeapTS, outputs: Outputs, history: torch.Tensor) -> None:
    expected = model.predictor_.model.forecast(history, record="leaps")
    torch.testing.assert_close(outputs["forecast"].detach(), expected.values, rtol=1e-5, atol=1e-5)
    levels = len(model.predictor_.levels)
    if levels > 1:
        quantiles = model.predictor_.model.forecast(history, quantiles=True).values.unflatten(2, (-1, levels))
        # A quantile near zero is as exact as its spread.
        atol = 1e-5 * float(quantiles.abs().max())
        torch.testing.assert_close(outputs["quantiles"].detach(), quantiles, rtol=1e-5, atol=atol)
    if expected.trace is None:
        assert set(outputs) == {"forecast", *(["quantiles"] if levels > 1 else [])}
        return
    assert torch.equal(outputs["start"], expected.trace.start)
    assert torch.equal(outputs["length"], expected.trace.length)
    assert torch.equal(outputs["scale"], expected.trace.scale)


@pytest.fixture(scope="module")
def multivariate(unchecked_shapes: None) -> LeapTS:  # noqa: ARG001 - the exports of it need that
    # Three leaps are enough to tell schedules apart; each further one makes the export longer.
    return made(mixing={"kind": "mlp"}, series_embedding=True, scheduling={"kind": "hierarchical", "max_leaps": 3})


@pytest.fixture(scope="module")
def onnx_file(multivariate: LeapTS, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    return export_model(multivariate, tmp_path_factory.mktemp("onnx") / "model.onnx", format="onnx")


@pytest.fixture(scope="module")
def pt2_file(multivariate: LeapTS, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_model(multivariate, tmp_path_factory.mktemp("pt2") / "model.pt2", format="pt2")


@pytest.fixture(scope="module")
def in_program() -> dict[str, str]:
    """What the reloaded program brought with it."""
    return {METADATA: ""}


@pytest.fixture(scope="module")
def reloaded(pt2_file: Path, in_program: dict[str, str]) -> torch.nn.Module:
    return torch.export.load(pt2_file, extra_files=in_program).module()


def test_the_windows_call_for_many_schedules(multivariate: LeapTS) -> None:
    trace = multivariate.predictor_.model.forecast(histories(multivariate), record="leaps").trace
    assert trace is not None
    assert len(trace.length.flatten(0, 1).unique(dim=0)) >= 4
    assert trace.scale.unique().tolist() == [0, 1, 2]


@pytest.mark.parametrize("count", [1, 7, WINDOWS])
def test_onnx_runtime_forecasts_and_leaps_the_same(multivariate: LeapTS, onnx_file: Path, count: int) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(onnx_file, providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].shape == ["batch", 3, LOOKBACK]
    names = [output.name for output in session.get_outputs()]
    history = histories(multivariate, count)
    values = session.run(None, {"history": history.numpy()})
    assert_same(
        multivariate, {name: torch.from_numpy(value) for name, value in zip(names, values, strict=True)}, history
    )


@pytest.mark.parametrize("count", [1, 7, WINDOWS])
def test_the_reloaded_program_forecasts_and_leaps_the_same(
    multivariate: LeapTS, reloaded: torch.nn.Module, count: int
) -> None:
    history = histories(multivariate, count)
    assert_same(multivariate, reloaded(history), history)


VARIANTS: dict[str, dict[str, Any]] = {
    "univariate": {"mixing": "none", "normalization": "last", "scheduling": {"kind": "hierarchical", "max_leaps": 2}},
    "clustered": {
        "mixing": "none",
        "state": {"kind": "cde", "clusters": 2},
        "scheduling": {"kind": "fixed", "step": 4},
    },
    "pooled": {"mixing": "pooled", "normalization": "none", "scheduling": "none"},
    "lstm": {
        "mixing": "none",
        "normalization": "shift",
        "state": "lstm",
        "scheduling": {"kind": "flat", "max_leaps": 2},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kind_of_model_becomes_a_program(variant: str) -> None:
    model = made(**VARIANTS[variant])
    history = histories(model)
    assert_same(model, exported_program(model.predictor_).module()(history), history)


def test_a_random_schedule_is_refused(tmp_path: Path) -> None:
    model = made(mixing="none", scheduling="monte_carlo")
    with pytest.raises(ConfigError, match="drawn at random cannot be exported"):
        export_model(model, tmp_path / "model.pt2", format="pt2")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("reloaded")
def test_the_files_carry_what_standardising_needs(
    multivariate: LeapTS, onnx_file: Path, in_program: dict[str, str]
) -> None:
    onnx = pytest.importorskip("onnx")
    in_onnx = {entry.key: entry.value for entry in onnx.load(onnx_file).metadata_props}[METADATA]
    assert json.loads(in_onnx) == json.loads(in_program[METADATA])
    about = json.loads(in_onnx)
    assert about["mean"] == multivariate.predictor_.scaler.mean.tolist()
    assert about["std"] == multivariate.predictor_.scaler.std.tolist()
    assert (about["series"], about["h"], about["input_size"]) == (["a", "b", "c"], H, LOOKBACK)
    assert about["scales"] == ["short", "mid", "long"]


def test_the_files_tell_nothing_of_the_computer_they_were_written_on(onnx_file: Path, pt2_file: Path) -> None:
    here = str(Path(__file__).parents[2]).encode()
    assert here not in onnx_file.read_bytes()
    with zipfile.ZipFile(pt2_file) as archive:
        assert not [name for name in archive.namelist() if here in archive.read(name)]


def test_a_missing_extra_is_named(multivariate: LeapTS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ImportError, match=r"pip install 'leapts\[onnx\]'"):
        export_model(multivariate, tmp_path / "model.onnx")
    with pytest.raises(ConfigError, match="there is no format 'tflite'"):
        export_model(multivariate, tmp_path / "model.tflite", format="tflite")  # type: ignore[arg-type]


def test_the_example_forecasts_without_torch(multivariate: LeapTS, onnx_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    frame = make_frame(seed=3)
    frame.to_csv(tmp_path / "data.csv", index=False)
    example = Path(__file__).parents[2] / "examples" / "forecast_with_onnx.py"
    without_torch = (
        "import runpy, sys\n"
        "for name in ('torch', 'leapts', 'pandas'): sys.modules[name] = None\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    command = [sys.executable, "-W", "error", "-c", without_torch, str(example), str(onnx_file)]
    done = subprocess.run([*command, str(tmp_path / "data.csv")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    forecast, trace = multivariate.predict(frame, return_trace=True)
    assert [row["unique_id"] for row in rows] == forecast["unique_id"].tolist()
    deviation = np.repeat(multivariate.predictor_.scaler.std.numpy(), H)
    mine = np.array([float(row["LeapTS"]) for row in rows])
    np.testing.assert_allclose(mine / deviation, forecast["LeapTS"] / deviation, rtol=1e-5, atol=1e-5)
    leaps = {
        (leap.unique_id, step): (leap.leap, leap.scale)
        for leap in trace.itertuples()
        for step in range(leap.start, leap.end)
    }
    assert [(int(row["leap"]), row["scale"]) for row in rows] == [
        leaps[row["unique_id"], int(row["step"]) - 1] for row in rows
    ]


@pytest.mark.usefixtures("doubles")
def test_a_program_takes_single_precision_whatever_the_default() -> None:
    program = exported_program(made(scheduling={"kind": "none"}, mixing={"kind": "none"}).predictor_)
    assert program.module()(torch.zeros(4, 1, LOOKBACK, dtype=torch.float32))["forecast"].dtype == torch.float32
