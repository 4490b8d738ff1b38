"""A check of our own for Schemathesis, which loads this file by its name: no refusal tells of the server's inside."""

from typing import Any

import schemathesis

from leapts_bench.resilience.outcome import INNARDS


@schemathesis.check  # type: ignore[untyped-decorator]
def tells_nothing(ctx: Any, response: Any, case: Any) -> None:  # noqa: ARG001
    """What is wrong is the caller's business; where in the server it was noticed is not."""
    if response.status_code >= 400:
        found = INNARDS.search(response.text)
        assert found is None, f"the answer tells of the server's inside: {found}"
