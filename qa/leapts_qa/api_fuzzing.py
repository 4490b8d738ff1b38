"""Requests made up from the OpenAPI description by Schemathesis, valid ones and others, sent to a real server."""

import importlib.util
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings

from leapts.errors import ConfigError
from leapts_bench.server_process import server_process
from leapts_qa.fuzzed_tables import tables
from leapts_qa.outcome import INNARDS, Outcome
from leapts_qa.samples import LOOKBACK, forecaster, waves

UNITS = tuple(f"seed {seed}" for seed in range(13))
# Of each operation, valid ones and as many others. To make one up takes longer than to send it, JSON above all, so each
# is sent as it is, then with what no schema can say put right, and so with the content of some others.
EXAMPLES = {"forecast": 330, "forecast_csv": 660, "report": 130}
_OTHERS = 3
_AHEAD = 12  # requests that are made up before the answers to others are there


def run(unit: str, place: Path) -> Outcome:
    """Do one unit.

    Raises:
        ConfigError: When Schemathesis is not installed.
    """
    if importlib.util.find_spec("schemathesis") is None:
        raise ConfigError("made-up requests need Schemathesis; install it: pip install schemathesis")
    forecaster().fit(waves()).save(place / "model")
    with server_process("-m", "leapts", "serve", str(place / "model")) as server:
        return asked(server.address, int(unit.split()[1]))


def asked(address: str, number: int, *, share: float = 1.0) -> Outcome:
    """Send requests of every kind to a server, and hold its answers to its description.

    Args:
        address: Where it is.
        number: The seed.
        share: How much of a unit to do.
    """
    import requests
    import schemathesis

    schemathesis.openapi.media_type("text/csv", tables())
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    outcome, checks = Outcome(), list(_checks())
    waiting: deque[Future[_End]] = deque()

    def note(most: int) -> None:
        while len(waiting) > most:
            end = waiting.popleft().result()
            outcome.count(end.said) if end.is_as_described else outcome.fail(end.said)

    with requests.Session() as session, ThreadPoolExecutor(1) as caller:
        session.trust_env = False  # neither proxies nor passwords of this computer are looked up

        def send(case: Any) -> None:
            waiting.append(caller.submit(_sent, case, session, checks))
            note(_AHEAD)

        for found in schema.get_all_operations():
            operation = found.ok()
            examples = max(1, round(share * EXAMPLES.get(operation.definition.raw["operationId"], 1)))
            for mode in schemathesis.GenerationMode if operation.body else (schemathesis.GenerationMode.POSITIVE,):
                _make_up(operation.as_strategy(mode), send, examples=examples, number=number)
        note(0)
    return outcome


def _make_up(strategy: Any, send: Callable[[Any], None], *, examples: int, number: int) -> None:
    """Make requests up, and send each with its variants."""
    others: deque[Any] = deque(maxlen=_OTHERS)

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def one(case: Any) -> None:
        likely = _likely(case)
        sent: list[Any] = []
        for variant in (case, likely, *(_with_content(likely, other) for other in others)):
            if all((variant.query, variant.body) != (other.query, other.body) for other in sent):
                send(variant)
                sent.append(variant)
        others.append(likely.body)

    one()


class _End(NamedTuple):
    is_as_described: bool
    said: str


def _sent(case: Any, session: Any, checks: list[Any]) -> _End:
    """Send a request and judge the answer."""
    try:
        answer = case.call(session=session, timeout=60)
        case.validate_response(answer, checks=checks)
        found = INNARDS.search(answer.text) if answer.status_code >= 400 else None
        if found and not INNARDS.search(repr((case.query, case.body))):  # a caller's own words may come back
            raise ValueError(f"the answer tells of the server's inside: {found[0]}")
    except (Exception, BaseExceptionGroup) as error:
        parts = error.exceptions if isinstance(error, BaseExceptionGroup) else [error]
        said = "; ".join(str(part) or repr(part) for part in parts)
        return _End(False, f"{case.operation.label}: {said} {case.query!r:.100} {case.body!r:.200}")
    return _End(True, f"answered with {answer.status_code}, as described")


def _checks() -> Iterator[Any]:
    """An answer's status, type, headers and content are as described; and no 500."""
    import schemathesis
    from schemathesis.specs.openapi import checks

    yield schemathesis.checks.not_a_server_error
    yield checks.status_code_conformance
    yield checks.content_type_conformance
    yield checks.response_schema_conformance
    yield checks.response_headers_conformance


def _likely(case: Any) -> Any:
    """The request with what no schema can say put right: the model, its columns, its stamps, a history's length."""
    unsure = ("model", "id_col", "time_col", "target_col", "layout")
    query = {name: value for name, value in case.query.items() if name not in unsure}
    body = case.body
    if isinstance(body, dict):
        body = _likely_part(body)
        body.pop("model", None)
        if body.get("level"):
            body.pop("quantiles", None)
        if isinstance(series := body.get("series"), list):
            body["series"] = [_likely_part(one) if isinstance(one, dict) else one for one in series]
    return _another(case, query, body)


def _likely_part(part: dict[str, Any]) -> dict[str, Any]:
    changed = dict(part)
    if isinstance(part.get("last"), str | int | float):
        changed["last"] = "2024-02-17"
    if isinstance(part.get("id"), float):
        changed["id"] = str(part["id"])
    if isinstance(values := part.get("values"), list):
        some = [0.5 if value is None else value for value in values]
        changed["values"] = (some * LOOKBACK)[: max(len(some), LOOKBACK)]
    return changed


def _with_content(case: Any, content: Any) -> Any:
    """The request with the table, or the series, of another."""
    if isinstance(case.body, dict) and isinstance(content, dict):
        return _another(case, case.query, {**case.body, "series": content.get("series")})
    if isinstance(case.body, str | bytes) and isinstance(content, str | bytes):
        return _another(case, case.query, content)
    return case


def _another(case: Any, query: dict[str, Any], body: Any) -> Any:
    return case.operation.Case(
        method=case.method,
        headers=case.headers,
        cookies=case.cookies,
        query=query,
        body=body,
        media_type=case.media_type,
    )
