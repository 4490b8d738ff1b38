"""The README's example prints its output, its commands run, and its links exist."""

import re
import shlex
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MAX_LINK_ROWS = 8
MAX_EXAMPLE_LINES = 8


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def _lines(program: str) -> list[str]:
    return [line for block in _blocks("console") for line in block.splitlines() if line.startswith(program)]


@pytest.fixture
def sales(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change into a folder with sales.csv."""
    bundled = resources.files("leapts.datasets") / "bundled" / "shop_sales.csv"
    (tmp_path / "sales.csv").write_bytes(bundled.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _tables(output: str) -> tuple[list[str], list[float], str]:
    """Labels and numbers of the forecast, and the header of the trace; leaps may differ between processors."""
    lines = output.splitlines()
    header = next(line for line in lines if "leap" in line.split())
    words = " ".join(lines[: lines.index(header)]).split()
    decimals = [word for word in words if re.fullmatch(r"-?\d+\.\d+", word)]
    return [word for word in words if word not in decimals], [float(word) for word in decimals], header


def test_python_example_prints_the_output_below_it(tmp_path: Path) -> None:
    (example,), (shown,) = _blocks("python"), _blocks("text")
    assert len([line for line in example.splitlines() if line]) <= MAX_EXAMPLE_LINES
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example], check=True, cwd=tmp_path, capture_output=True, text=True
    )
    labels, numbers, header = _tables(done.stdout)
    shown_labels, shown_numbers, shown_header = _tables(shown)
    assert labels == shown_labels
    assert header.split() == shown_header.split()
    np.testing.assert_allclose(numbers, shown_numbers, rtol=0.05)


def test_commands_run_in_their_order(sales: Path) -> None:
    commands = _lines("leapts ")
    assert [command.split()[1] for command in commands] == ["fit", "predict", "backtest", "report"]
    for command in commands:
        arguments = [sys.executable, "-m", "leapts", *shlex.split(command)[1:]]
        if shlex.split(command)[1] in ("fit", "backtest"):
            arguments += ["--max-steps", "5"]
        done = subprocess.run(arguments, check=False, cwd=sales, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert {"forecast.csv", "trace.csv", "report.html"} <= {path.name for path in sales.iterdir()}


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_make_commands_are_targets_that_ci_runs() -> None:
    commands = _lines("make ")
    assert commands == ["make demo", "make test"]
    for command in commands:
        done = subprocess.run(
            [*shlex.split(command), "--dry-run"], check=False, cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    ci = (ROOT / ".ci" / "run").read_text().splitlines()
    assert {"make test", "make test-slow"} <= set(ci)


def test_links_and_pictures_exist() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    for target in targets:
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_readme_is_short() -> None:
    rows = README.split("## Documentation")[1].count("\n| ") - 1  # without the empty header
    assert 0 < rows <= MAX_LINK_ROWS
    assert "time series forecasting" in README.split("\n\n")[1].replace("\n", " ")
