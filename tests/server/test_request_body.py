"""Bodies are read up to their limits, and what was held is let go however the reading ends."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from leapts.server import Limits
from leapts.server import request_body as reader
from leapts.server.problems import Problem
from leapts.server.request_body import NOBODY_THERE, BodyReader, Disconnected

JSON = "application/json"
GONE = {"type": "http.disconnect"}


def _part(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


class Caller:
    """Sends these messages one by one, and nothing after them."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.left = list(messages)

    async def __call__(self) -> dict[str, Any]:
        if not self.left:
            await asyncio.Event().wait()
        return self.left.pop(0)


def _limits(**limits: Any) -> Limits:
    return Limits(**{"body": 10, "bodies": 15, "seconds": 5.0, **limits})


def _read(taking: BodyReader, caller: Caller, headers: Iterable[tuple[bytes, bytes]] = (), **scope: Any) -> bytes:
    given = {b"content-type": b"application/json", **dict(headers)}
    return asyncio.run(taking.body({"headers": list(given.items()), **scope}, caller, JSON))


def _refused(taking: BodyReader, caller: Caller, headers: Iterable[tuple[bytes, bytes]] = ()) -> Problem:
    with pytest.raises(Problem) as error:
        _read(taking, caller, headers)
    assert taking.held == 0
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
    taking = BodyReader(_limits())
    assert _read(taking, Caller(*messages)) == b"".join(message.get("body", b"") for message in messages)
    assert taking.held == 0


def test_a_body_too_large_by_its_word_is_not_begun() -> None:
    assert _read(BodyReader(_limits()), Caller(_part(b"1", more=False)), [(b"content-length", b"10")]) == b"1"
    refused = _refused(BodyReader(_limits()), Caller(_part(b"", more=False)), [(b"content-length", b"11")])
    assert refused.detail == "the request has 11 bytes or more, and at most 10 are taken"
    assert "--max-body" in refused.cure


def test_a_body_too_large_by_its_bytes_is_cut_off() -> None:
    refused = _refused(BodyReader(_limits()), Caller(_part(b"12345"), _part(b"678901", more=False), GONE))
    assert (refused.kind.name, refused.detail[:22]) == ("too-large", "the request has 11 byt")


def test_all_bodies_together_have_a_limit() -> None:
    taking = BodyReader(_limits())
    taking.held = 10
    assert _read(taking, Caller(_part(b"12345", more=False))) == b"12345"
    with pytest.raises(Problem, match="too many large requests are being read at once") as error:
        _read(taking, Caller(_part(b"123456", more=False), GONE))
    assert error.value.headers == {"Retry-After": "1", "Connection": "close"}
    assert taking.held == 10


def test_a_caller_that_goes_is_not_answered() -> None:
    assert NOBODY_THERE == 499
    taking = BodyReader(_limits())
    with pytest.raises(Disconnected):
        _read(taking, Caller(_part(b"12345"), GONE))
    assert taking.held == 0


def test_reading_a_body_has_a_time_limit() -> None:
    refused = _refused(BodyReader(_limits(seconds=0.05)), Caller(_part(b"12345")))
    assert refused.kind.status == 408
    assert "0.05 s" in refused.detail


@pytest.mark.parametrize(
    ("messages", "left"),
    [
        ([_part(b"1234"), _part(b"5"), _part(b"", more=False), GONE], 1),
        ([_part(b"1234"), {"type": "http.request"}, GONE], 1),
        ([_part(b"1234"), {**GONE, "more_body": True}, _part(b"5")], 1),
        ([_part(b"12345" * 8), _part(b"67890" * 8), _part(b"1")], 1),
        ([_part(b"123456789" * 8), _part(b"0" * 8), _part(b"1")], 1),
        ([_part(b"12345" * 8), _part(b"6789" * 8), _part(b"1"), _part(b"", more=False), GONE], 1),
    ],
)
def test_who_is_refused_may_end_what_it_says_up_to_a_limit(messages: list[dict[str, Any]], left: int) -> None:
    """Who is cut off while it sends may never read why."""
    caller = Caller(*messages)
    _refused(BodyReader(_limits()), caller, [(b"content-length", b"11")])
    assert len(caller.left) == left


def test_nobody_is_waited_for_who_was_refused_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reader._LINGER == 1.0
    monkeypatch.setattr(reader, "_LINGER", 0.05)
    _refused(BodyReader(_limits()), Caller(), [(b"content-length", b"11")])


@pytest.mark.parametrize("value", [b"", b"identity", b" Identity "])
def test_what_is_not_compressed_may_say_so(value: bytes) -> None:
    assert _read(BodyReader(_limits()), Caller(_part(b"1", more=False)), [(b"content-encoding", value)]) == b"1"


@pytest.mark.parametrize("value", [b"application/json; charset=utf-8", b" Application/JSON ", b"application/json;x;y"])
def test_a_type_may_be_written_in_its_own_way(value: bytes) -> None:
    assert _read(BodyReader(_limits()), Caller(_part(b"1", more=False)), [(b"content-type", value)]) == b"1"


def test_another_type_is_refused_by_its_name() -> None:
    refused = _refused(BodyReader(_limits()), Caller(), [(b"content-type", b"x" * 99)])
    assert refused.detail == f"the content is {'x' * 60}, and application/json is wanted"
    assert "of no type" in _refused(BodyReader(_limits()), Caller(), [(b"content-type", b"")]).detail
    assert "compressed" in _refused(BodyReader(_limits()), Caller(), [(b"content-encoding", b"br")]).detail


@pytest.mark.parametrize(("kind", "seconds"), [("forecast", "1"), ("table", "5")])
def test_there_are_so_many_places_of_each_kind(kind: str, seconds: str) -> None:
    taking = BodyReader(_limits(concurrency=2, tables=2))
    with taking.place(kind):
        with taking.place(kind):
            with pytest.raises(Problem, match="2 requests are being served already") as error:
                taking.place(kind).__enter__()
            assert error.value.headers["Retry-After"] == seconds
            assert taking.in_work[kind] == 2
        taking.require_place(kind)
    assert taking.in_work == {"forecast": 0, "table": 0}


def test_a_place_is_free_again_whatever_went_wrong() -> None:
    taking = BodyReader(_limits())
    with pytest.raises(ZeroDivisionError), taking.place("forecast"):
        raise ZeroDivisionError
    assert taking.in_work["forecast"] == 0
