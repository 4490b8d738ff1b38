"""Actions and the build backend are pinned, and CI uses an extra package index only together with hashes."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml: Any = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def _steps() -> list[dict[str, object]]:
    jobs = [job for path in WORKFLOWS for job in yaml.safe_load(path.read_text())["jobs"].values()]
    return [step for job in jobs for step in job["steps"]]


def test_actions_are_pinned_by_commit_and_say_their_version() -> None:
    lines = [line for path in WORKFLOWS for line in path.read_text().splitlines() if "uses:" in line]
    assert len(lines) == sum("uses" in step for step in _steps()) > 0
    for line in lines:
        assert re.search(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_the_build_backend_is_pinned_to_the_locked_version() -> None:
    (backend,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert re.fullmatch(r"[a-z-]+==[0-9.]+", backend)
    assert f"\n{backend} \\\n" in (ROOT / "requirements-dev.lock").read_text()


def test_an_extra_index_is_used_only_with_hashes() -> None:
    for path in WORKFLOWS:
        assert "PIP_EXTRA_INDEX_URL" not in yaml.safe_load(path.read_text()).get("env", {})
    users = [step for step in _steps() if "PIP_EXTRA_INDEX_URL" in str(step.get("env"))]
    assert users
    for step in users:
        locked = re.search(r"LOCKED=(.*)", str(step["run"]))
        assert locked is not None, step
        condition = re.search(r"matrix\S+ == '3\.11'", locked[1])
        assert locked[1] == "1" or (condition is not None and condition[0] in str(step["env"])), step


def test_workflows_may_only_read() -> None:
    assert all(yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"} for path in WORKFLOWS)


def test_the_danger_of_an_extra_index_is_documented() -> None:
    assert "PIP_EXTRA_INDEX_URL" in (ROOT / "SECURITY.md").read_text()
