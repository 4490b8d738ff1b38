"""Bodies are received up to their limits, and their bytes are released in every case."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from fastapi import Request

from leapts.server import Limits, request_body
from leapts.server.problems import Problem
from leapts.server.request_body import BodyReader, parse_forecast

JSON = "application/json"
GONE = {"type": "http.disconnect"}
ONE = b'{"id": "a", "values": [1]}'


def _part(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


class Client:
    """Sends these messages one by one, and nothing after them."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.left = list(messages)

    async def __call__(self) -> dict[str, Any]:
        if not self.left:
            await asyncio.Event().wait()
        return self.left.pop(0)


def _limits(**limits: Any) -> Limits:
    return Limits(**{"body": 10, "bodies": 15, "seconds": 5.0, **limits})


def _receive(bodies: BodyReader, client: Client, headers: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
    given = {b"content-type": b"application/json", **dict(headers)}
    request = Request({"type": "http", "headers": list(given.items())}, client)
    return asyncio.run(bodies.receive(request, JSON))


def _refused(bodies: BodyReader, client: Client, headers: Iterable[tuple[bytes, bytes]] = ()) -> Problem:
    with pytest.raises(Problem) as error:
        _receive(bodies, client, headers)
    assert bodies.held == 0
    assert error.value.headers is not None
    assert error.value.headers["Connection"] == "close"
    return error.value


@pytest.mark.parametrize(
    "messages",
    [
        [_part(b"1234567890", more=False)],
        [_part(b"12345"), _part(b"67890", more=False)],
        [_part(b"12345"), {"type": "http.request"}],
        [{"type": "http.request"}],
    ],
)
def test_a_body_is_all_of_its_parts(messages: list[dict[str, Any]]) -> None:
    bodies = BodyReader(_limits())
    assert _receive(bodies, Client(*messages)) == b"".join(message.get("body", b"") for message in messages)
    assert bodies.held == 0


def test_a_body_too_large_by_its_header_is_not_received() -> None:
    assert _receive(BodyReader(_limits()), Client(_part(b"1", more=False)), [(b"content-length", b"10")]) == b"1"
    refused = _refused(BodyReader(_limits()), Client(_part(b"", more=False)), [(b"content-length", b"11")])
    assert (refused.kind.name, "11 bytes" in refused.detail) == ("too-large", True)
    assert "--max-body" in refused.hint


def test_a_body_too_large_by_its_bytes_is_cut_off() -> None:
    refused = _refused(BodyReader(_limits()), Client(_part(b"12345"), _part(b"678901", more=False), GONE))
    assert (refused.kind.name, "11 bytes" in refused.detail) == ("too-large", True)


def test_all_bodies_together_have_a_limit() -> None:
    bodies = BodyReader(_limits())
    bodies.held = 10
    assert _receive(bodies, Client(_part(b"12345", more=False))) == b"12345"
    with pytest.raises(Problem) as error:
        _receive(bodies, Client(_part(b"123456", more=False), GONE))
    assert error.value.headers == {"Retry-After": "1", "Connection": "close"}
    assert bodies.held == 10


def test_a_client_that_leaves_gets_no_response() -> None:
    assert _refused(BodyReader(_limits()), Client(_part(b"12345"), GONE)).status_code == 499


def test_receiving_a_body_has_a_time_limit() -> None:
    refused = _refused(BodyReader(_limits(seconds=0.05)), Client(_part(b"12345")))
    assert refused.kind.status == 408
    assert "0.05 s" in refused.detail


@pytest.mark.parametrize(
    "messages",
    [
        [_part(b"1234"), _part(b"5"), _part(b"", more=False), GONE],
        [_part(b"1234"), {"type": "http.request"}, GONE],
        [_part(b"1234"), {**GONE, "more_body": True}, _part(b"5")],
        [_part(b"12345" * 8), _part(b"67890" * 8), _part(b"1")],
        [_part(b"123456789" * 8), _part(b"0" * 8), _part(b"1")],
        [_part(b"12345" * 8), _part(b"6789" * 8), _part(b"1"), _part(b"", more=False), GONE],
    ],
)
def test_a_refused_client_may_finish_sending_up_to_a_limit(messages: list[dict[str, Any]]) -> None:
    """A client that is cut off while it sends may never read the response."""
    client = Client(*messages)
    _refused(BodyReader(_limits()), client, [(b"content-length", b"11")])
    assert len(client.left) == 1


def test_a_refused_client_that_sends_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert request_body._DISCARD_SECONDS == 1.0
    monkeypatch.setattr(request_body, "_DISCARD_SECONDS", 0.05)
    _refused(BodyReader(_limits()), Client(), [(b"content-length", b"11")])


@pytest.mark.parametrize("value", [b"", b"identity", b" Identity "])
def test_uncompressed_content_is_accepted(value: bytes) -> None:
    assert _receive(BodyReader(_limits()), Client(_part(b"1", more=False)), [(b"content-encoding", value)]) == b"1"


@pytest.mark.parametrize("value", [b"application/json; charset=utf-8", b" Application/JSON ", b"application/json;x;y"])
def test_a_content_type_may_have_parameters(value: bytes) -> None:
    assert _receive(BodyReader(_limits()), Client(_part(b"1", more=False)), [(b"content-type", value)]) == b"1"


@pytest.mark.parametrize(
    "header", [(b"content-type", b"x" * 9999), (b"content-type", b""), (b"content-encoding", b"br")]
)
def test_other_content_is_refused_by_its_type(header: tuple[bytes, bytes]) -> None:
    refused = _refused(BodyReader(_limits()), Client(), [header])
    assert refused.kind.status == 415
    assert len(refused.detail) < 100


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b'{"series": [%s], "trace": true, "trace": false}' % ONE, "'trace'"),
        (b'{"series": [%s], "series": [%s]}' % (ONE, ONE), "'series'"),
        (b'{"series": [%s, {"id": 1, "values": [1], "id" : 2}]}' % ONE, "'id'"),
        (b'{"series": [%s], "trace": true, "tr\\u0061ce": false}' % ONE, "'trace'"),
        (b'{"series": [%s], "trace"\n\t:true, "trace":true}' % ONE, "'trace'"),
    ],
)
def test_repeated_keys_are_refused(body: bytes, key: str) -> None:
    with pytest.raises(Problem, match=key) as refused:
        parse_forecast(body, Limits())
    assert refused.value.status_code == 400


def test_text_that_looks_like_keys_is_text() -> None:
    name = r"\"id\":\"id\":"
    body = b'{"series": [{"id": "%s", "values": [1]}, {"id": "x\\\\", "values": [1]}]}' % name.encode()
    assert [one.id for one in parse_forecast(body, Limits()).series] == ['"id":"id":', "x\\"]


def test_very_many_keys_are_refused_before_they_are_read() -> None:
    body = b'{"series": [%s], %s}' % (ONE, b", ".join(b'"k%d": 0' % number for number in range(1000)))
    with pytest.raises(Problem) as refused:
        parse_forecast(body, Limits(series=10))
    assert refused.value.kind.name == "too-large"
    with pytest.raises(Problem) as refused:
        parse_forecast(b'{"series": [%s], "%s": 0}' % (ONE, b"x" * 5000), Limits())
    assert refused.value.kind.name == "bad-data"
    assert len(refused.value.detail) < 100
