"""The lock pins all that development needs, by version and by digest, and names nobody to fetch it from."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements-dev.lock").read_text()
PINNED = re.compile(
    r"^([A-Za-z0-9._-]+)==(\S+)((?: ;[^\n\\]*)?) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.M
)


def _pins() -> dict[str, str]:
    return {str(canonicalize_name(found[1])): found[2] for found in PINNED.finditer(LOCK)}


def test_every_requirement_of_development_is_pinned_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pins = _pins()
    for line in [*project["dependencies"], *extras["dev"], *extras["docs"]]:
        requirement = Requirement(line)
        name = str(canonicalize_name(requirement.name))
        assert name in pins, f"{name} is not in requirements-dev.lock; run make lock"
        assert requirement.specifier.contains(pins[name]), f"{line}, but {pins[name]} is locked; run make lock"


def test_every_line_is_a_pin_with_digests_or_a_remark() -> None:
    rest = PINNED.sub("", LOCK)
    assert [line for line in rest.splitlines() if line and not line.lstrip().startswith("#")] == []


def test_torch_is_the_build_for_processors_that_the_constraints_name() -> None:
    (constraint,) = (ROOT / "constraints.txt").read_text().split()
    assert constraint == f"torch=={_pins()['torch'].removesuffix('+cpu')}"
    assert _pins()["torch"].endswith("+cpu")
    assert not [name for name in _pins() if name.startswith(("nvidia", "cuda", "triton"))]


def test_no_index_is_named() -> None:
    assert "://" not in LOCK
    assert "index" not in LOCK
    assert "find-links" not in LOCK
