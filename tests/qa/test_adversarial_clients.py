"""A short share of the adversarial clients, open ports and overload; all of it runs with `make stress`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server needs: pip install 'leapts[serve]'")
pytest.importorskip("prometheus_client", reason="the server needs: pip install 'leapts[serve]'")

from leapts_bench.server_process import ServerProcess, server_process
from leapts_qa import adversarial_clients, open_ports, overload
from leapts_qa.load_generator import GONE, Answer
from leapts_qa.outcome import INNARDS, Outcome
from leapts_qa.samples import forecaster, waves

REFUSAL = b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    place = tmp_path_factory.mktemp("server")
    forecaster().fit(waves()).save(place / "model")
    with server_process("-m", "leapts", "serve", str(place / "model")) as server:
        yield server


@pytest.mark.parametrize("unit", ["endless bodies", "nested brackets", "NaN tokens", "forms", "levels and samples"])
def test_adversarial_clients_get_a_forecast_or_a_refusal(server: ServerProcess, unit: str) -> None:
    outcome = adversarial_clients.attacked(unit, server)
    assert not outcome.failures
    assert outcome.cases > 5


def test_slow_sockets_do_not_delay_other_clients(server: ServerProcess) -> None:
    outcome = adversarial_clients.attacked("slow sockets", server, share=0.1)
    assert not outcome.failures
    assert outcome.ends["slow sockets held open"] == 50
    assert outcome.ends["answered with a forecast"] > 0


@pytest.mark.slow
def test_junk_is_refused(server: ServerProcess) -> None:
    outcome = adversarial_clients.attacked("junk, seed 3", server, share=0.04)
    assert not outcome.failures


@pytest.mark.parametrize(("more", "is_wide"), [([], False), (["--host", "0.0.0.0"], True)])
def test_open_ports_are_detected_and_by_default_are_on_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], is_wide: bool
) -> None:
    monkeypatch.setenv("LEAPTS_TOKEN", "0123456789abcdef")
    forecaster().fit(waves()).save(tmp_path / "model")
    arguments = ["-m", "leapts", "serve", "model", "--port", "0", *more]
    outcome = open_ports.watched("serve", arguments, tmp_path)
    assert outcome.failures == (["serve: listens at 00000000"] if is_wide else [])
    assert outcome.ends["listens on loopback only"] == (not is_wide)


@pytest.mark.parametrize(
    ("addresses", "fails"),
    [
        (set(), False),
        ({"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}, False),
        ({"00000000000000000000000000000000"}, True),
        ({"0100007F", "020200C0"}, True),
    ],
)
def test_a_port_beyond_loopback_is_a_failure(addresses: set[str], fails: bool) -> None:
    outcome = Outcome()
    open_ports.judge("serve", addresses, 1, outcome)
    assert bool(outcome.failures) == fails


@pytest.mark.slow
def test_a_stop_under_load_leaves_no_request_unanswered(tmp_path: Path) -> None:
    outcome = overload.stopped(0, tmp_path, callers=4)
    assert not outcome.failures
    assert outcome.ends["answered in full after a stop signal"] > 4


def test_a_port_of_a_detached_process_is_detected(tmp_path: Path) -> None:
    listens = "import socket, time; one = socket.create_server(('', 0)); time.sleep(2)"
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {listens!r}], start_new_session=True)"
    outcome = open_ports.watched("launcher", ["-c", starts], tmp_path)
    assert outcome.failures == ["launcher: listens at 00000000"]


def _answers(status: int, seconds: float, count: int = 50, content: bytes = REFUSAL) -> list[Answer]:
    return [Answer(status, seconds, content)] * count


@pytest.mark.parametrize(
    ("loud", "after", "message"),
    [
        (_answers(200, 0.019) + _answers(503, 0.001), _answers(200, 0.01), ""),
        (_answers(200, 0.021) + _answers(503, 0.001), _answers(200, 0.01), "p99 of accepted"),
        (_answers(200, 0.01) + _answers(503, 0.021), _answers(200, 0.01), "p99 of refused"),
        (_answers(200, 0.01) + _answers(503, 0.001), _answers(200, 0.03), "one second after"),
        (_answers(200, 0.01) + _answers(503, 0.001), _answers(503, 0.01), "a quiet server"),
        (_answers(200, 0.01) + _answers(503, 0.001) + _answers(500, 0.01, 1), _answers(200, 0.01), "status 500"),
        (_answers(200, 0.01) + _answers(503, 0.001) + _answers(GONE, 0.01, 1), _answers(200, 0.01), "status 0"),
        (_answers(200, 0.01) + _answers(503, 0.001, content=b""), _answers(200, 0.01), "when to come again"),
        (_answers(200, 0.01), _answers(200, 0.01), "some of each"),
    ],
)
def test_overload_is_judged_by_latency_and_refusals(loud: list[Answer], after: list[Answer], message: str) -> None:
    outcome = Outcome()
    overload.judge("2 times", _answers(200, 0.01), loud, after, outcome)
    assert bool(outcome.failures) == bool(message)
    assert message in "".join(outcome.failures)


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("the series 'a' has 3 values; give 6", False),
        ('File "x", line 3', True),
        ("leapts.errors.DataError", True),
        ("/tmp/model is missing", True),
        ("<object at 0x7f>", True),
    ],
)
def test_disclosed_internals_are_detected(text: str, tells: bool) -> None:
    assert bool(INNARDS.search(text)) == tells
