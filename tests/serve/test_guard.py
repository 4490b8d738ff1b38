"""Who may come in, and what every answer carries."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pandas as pd
import pytest

from leapts import ConfigError
from leapts.serve.models import Shelf
from leapts.serve.running import hosts_of, is_loopback, read_token
from tests.serve.conftest import client_of, histories

TOKEN = "0123456789abcdefXYZ"
GUARDED = [("POST", "/v1/forecast"), ("POST", "/v1/report"), ("POST", "/v1/forecast/csv"), ("GET", "/v1/models")]
GUARDED += [("GET", "/metrics"), ("GET", "/elsewhere")]
OPEN = ["/", "/docs", "/openapi.json", "/healthz", "/readyz"]


@pytest.fixture(scope="module")
def guarded(shelf: Shelf) -> Iterator[httpx.Client]:
    with client_of(shelf, token=TOKEN) as client:
        yield client


@pytest.mark.parametrize(("method", "path"), GUARDED)
@pytest.mark.parametrize("given", [None, "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN])
def test_without_the_token_there_is_no_answer(guarded: httpx.Client, method: str, path: str, given: str | None) -> None:
    headers = {} if given is None else {"Authorization": given}
    answer = guarded.request(method, path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert TOKEN not in answer.text


def test_the_token_opens(guarded: httpx.Client, frame: pd.DataFrame) -> None:
    asked = {"model": "apart", "series": histories(frame)}
    for scheme in ("Bearer", "bearer"):
        answer = guarded.post("/v1/forecast", json=asked, headers={"Authorization": f"{scheme} {TOKEN}"})
        assert answer.status_code == 200


@pytest.mark.parametrize("path", OPEN)
def test_pages_and_probes_are_open_and_harmless(guarded: httpx.Client, path: str) -> None:
    answer = guarded.get(path)
    assert answer.status_code == 200
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_allow_nothing_from_elsewhere(guarded: httpx.Client, path: str) -> None:
    answer = guarded.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy.replace("https://", "")
    assert "//" not in answer.text.replace("http://www.w3.org", "").split("<style>")[0]


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(file, {"LEAPTS_TOKEN": "b" * 20}) == TOKEN
    assert read_token(None, {"LEAPTS_TOKEN": TOKEN}) == TOKEN
    assert read_token(None, {}) is None


@pytest.mark.parametrize("token", ["", "short", "with space in the middle", "ünïcödé-ünïcödé-ü"])
def test_a_poor_token_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(ConfigError, match="secrets") as error:
        read_token(None, {"LEAPTS_TOKEN": token})
    assert not token or token not in str(error.value)


def test_a_token_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        read_token(tmp_path / "nowhere", {})


@pytest.mark.parametrize("name", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost@evil"])
def test_a_server_of_this_computer_answers_to_no_other_name(own: httpx.Client, name: str) -> None:
    for path in ("/", "/v1/models", "/healthz"):
        answer = own.get(path, headers={"Host": name})
        assert answer.status_code == 421
        assert "127.0.0.1" in answer.json()["cure"]


@pytest.mark.parametrize("name", ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]", "[::1]:8080"])
def test_a_server_of_this_computer_answers_to_its_own_names(own: httpx.Client, name: str) -> None:
    assert own.get("/v1/models", headers={"Host": name}).status_code == 200


@pytest.fixture(scope="module")
def own(shelf: Shelf) -> Iterator[httpx.Client]:
    with client_of(shelf, hosts=hosts_of("127.0.0.1")) as client:
        yield client


def test_a_server_for_others_answers_to_any_name() -> None:
    assert hosts_of("0.0.0.0") is None


@pytest.mark.parametrize(
    ("host", "is_own"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)]
)
def test_loopback_is_told_from_the_world(host: str, is_own: bool) -> None:
    assert is_loopback(host) is is_own
