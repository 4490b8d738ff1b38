"""What LeapTS depends on may be used by anyone, and the list of it is true."""

import re
import sys
from importlib.metadata import version

import pytest

from licences import DEVELOPING, RUNNING, TARGET, Package, is_accepted, needed, packages

# Other builds of torch bring other packages along, and so do other versions of Python; the lock has these.
FOR_PROCESSORS = version("torch").endswith("+cpu")
AS_LOCKED = FOR_PROCESSORS and sys.version_info[:2] == (3, 11)


@pytest.mark.skipif(not FOR_PROCESSORS, reason="this build of torch is not the one that is developed with")
def test_everything_needed_is_under_an_accepted_licence() -> None:
    found = packages()
    assert {package.name for package in found} >= {"numpy", "pandas", "torch", "pytest"}
    assert [package for package in found if not is_accepted(package)] == []


@pytest.mark.parametrize(
    ("licence", "to_run", "to_develop"),
    [
        ("MIT", True, True),
        ("MPL-2.0", False, True),
        ("GPL-3.0-only", False, False),
        ("MIT AND GPL-3.0-only", False, False),
        ("MIT OR GPL-3.0-only", True, True),
        ("GPL-3.0-only AND (MIT OR GPL-2.0-only)", False, False),
        ("Apache-2.0 WITH LLVM-exception AND MIT", True, True),
        ("unknown", False, False),
    ],
)
def test_an_expression_is_read_with_care(licence: str, to_run: bool, to_develop: bool) -> None:
    assert is_accepted(Package("some", "1", licence, RUNNING)) is to_run
    assert is_accepted(Package("some", "1", licence, DEVELOPING)) is to_develop


@pytest.mark.skipif(not AS_LOCKED, reason="the page lists what the lock has")
def test_the_page_lists_everything_needed_to_run() -> None:
    listed = set(
        re.findall(r"^\| ([a-z0-9-]+) \|", TARGET.read_text().split(f"Needed by {DEVELOPING}")[0], re.MULTILINE)
    )
    assert listed - {"package"} == set(needed("leapts", ())) - {"leapts"}
