"""What the library may not do would be heard, and what tests do is their own affair."""

import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests import audit

OURS = Path(__file__).parents[1] / "src" / "leapts" / "made_up.py"


def ours(body: str) -> Callable[..., Any]:
    """A function that looks as if it were in the library."""
    space: dict[str, Any] = {}
    exec(compile(f"def act(given):\n    {body}\n", str(OURS), "exec"), space)
    act: Callable[..., Any] = space["act"]
    return act


@pytest.mark.parametrize(
    ("body", "event"),
    [
        ("import pickle; pickle.loads(given)", "pickle.find_class"),
        ("import pickle; pickle._loads(given)", "pickle.find_class"),
        ("eval('1 + 1')", "exec"),
        ("exec('given = 1')", "exec"),
        ("import os; os.system('true')", "os.system"),
        ("import subprocess; subprocess.run(['true'], check=True)", "subprocess.Popen"),
    ],
)
def test_what_the_library_may_not_do_is_heard(body: str, event: str) -> None:
    ours(body)(pickle.dumps(Fraction(1, 2)))
    with pytest.raises(AssertionError, match=f"{event} .* at /made_up.py:2"):
        audit.require_nothing_heard()
    audit.require_nothing_heard()


def test_it_is_heard_through_others_too() -> None:
    ours("list(map(__import__('pickle').loads, [given]))")(pickle.dumps(Fraction(1, 2)))
    with pytest.raises(AssertionError, match=r"pickle\.find_class"):
        audit.require_nothing_heard()


def test_what_tests_do_is_their_own_affair() -> None:
    ours("given()")(lambda: eval("1 + 1"))
    assert pickle.loads(pickle.dumps(Fraction(1, 2))) == Fraction(1, 2)
    audit.require_nothing_heard()
