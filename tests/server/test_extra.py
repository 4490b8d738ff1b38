"""What the server is built on is there, or is named."""

import pytest

from leapts.server import extra
from leapts.server.extra import require_extra


@pytest.mark.parametrize("needed", [("fastapi", "nothing_of_that_name"), ("nothing_of_that_name",)])
def test_a_missing_part_of_the_server_is_named(monkeypatch: pytest.MonkeyPatch, needed: tuple[str, ...]) -> None:
    require_extra()
    monkeypatch.setattr(extra, "_NEEDED", needed)
    with pytest.raises(ImportError, match=r"pip install 'leapts\[serve\]'"):
        require_extra()
