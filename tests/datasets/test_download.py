import errno
import hashlib
import http.client
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from leapts.datasets.catalogue import Dataset, StoredFile, find
from leapts.datasets.download import download, fetch, matches
from leapts.errors import DownloadError

CONTENT = bytes(range(256)) * 1000
SHA256 = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
GIT = f"git:{hashlib.sha1(b'blob 256000' + bytes(1) + CONTENT).hexdigest()}"


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT, in as many good and bad ways as it has paths; keeps the Range headers it was sent."""

    ranges: list[str | None]

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.ranges.append(asked)
        if self.path == "/missing":
            return self.send_error(404)
        if self.path == "/forbidden":
            return self.send_error(403)
        if self.path == "/broken":
            return self.send_error(503)
        if self.path == "/elsewhere":
            return self.answer(302, b"", {"Location": "/file"})
        if self.path == "/to-a-local-file":
            return self.answer(302, b"", {"Location": "ftp://127.0.0.1/etc/passwd"})
        if self.path == "/damaged":
            return self.answer(200, CONTENT[:-1] + b"?")
        if self.path == "/cut":
            return self.answer(200, CONTENT[:1000], {"Content-Length": str(len(CONTENT))})
        if self.path == "/silent":
            return time.sleep(1)
        if self.path == "/unannounced":
            return self.answer(200, CONTENT, announce=False)
        if asked and self.path == "/file":
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(CONTENT):
                return self.answer(416, b"", {"Content-Range": f"bytes */{len(CONTENT)}"})
            piece = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
            return self.answer(206, CONTENT[start:], {"Content-Range": piece})
        return self.answer(200, CONTENT)  # "/no-range" among others

    def answer(self, code: int, body: bytes, headers: dict[str, str] | None = None, *, announce: bool = True) -> None:
        self.send_response(code)
        headers = headers or {}
        if announce:
            headers = {"Content-Length": str(len(body))} | headers
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Handler.ranges = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["/file", "/elsewhere", "/unannounced"])
@pytest.mark.parametrize("checksum", [SHA256, GIT, None])
def test_a_download_arrives_whole_and_leaves_nothing_else(
    server: str, tmp_path: Path, path: str, checksum: str | None
) -> None:
    target = download(server + path, tmp_path / "a.csv", checksum=checksum)
    assert target.read_bytes() == CONTENT
    assert list(tmp_path.iterdir()) == [target]


def test_progress_counts_up_to_the_whole(server: str, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    download(server + "/file", tmp_path / "a", progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (len(CONTENT), len(CONTENT))


@pytest.mark.parametrize("start", [1, 100_000, len(CONTENT)])
def test_a_part_is_continued_where_it_stopped(server: str, tmp_path: Path, start: int) -> None:
    (tmp_path / "a.part").write_bytes(CONTENT[:start])
    assert download(server + "/file", tmp_path / "a", checksum=SHA256).read_bytes() == CONTENT
    assert Handler.ranges == [f"bytes={start}-"]


def test_a_server_without_ranges_starts_over(server: str, tmp_path: Path) -> None:
    (tmp_path / "a.part").write_bytes(b"x" * 5000)
    seen: list[tuple[int, int | None]] = []
    target = download(
        server + "/no-range",
        tmp_path / "a",
        checksum=SHA256,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert target.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_part_longer_than_the_file_starts_over(server: str, tmp_path: Path) -> None:
    (tmp_path / "a.part").write_bytes(CONTENT + b"more")
    assert download(server + "/file", tmp_path / "a", checksum=SHA256).read_bytes() == CONTENT


def test_without_a_checksum_nothing_is_pieced_together(server: str, tmp_path: Path) -> None:
    (tmp_path / "a.part").write_bytes(b"of another file")
    assert download(server + "/file", tmp_path / "a").read_bytes() == CONTENT
    assert Handler.ranges == [None]


def test_a_download_that_breaks_off_goes_on_next_time(server: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"broke off .*; run again|broke off \(.*run again"):
        download(server + "/cut", tmp_path / "a", checksum=SHA256)
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "a.part").stat().st_size == 1000
    assert download(server + "/file", tmp_path / "a", checksum=SHA256).read_bytes() == CONTENT
    assert Handler.ranges == [None, "bytes=1000-"]


def test_damaged_content_never_takes_the_place_of_the_file(server: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"what was there before")
    with pytest.raises(DownloadError, match=f"does not have the checksum {SHA256}"):
        download(server + "/damaged", tmp_path / "a", checksum=SHA256)
    assert (tmp_path / "a").read_bytes() == b"what was there before"
    assert not (tmp_path / "a.part").exists()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/missing", r"is not there any more \(404\); look for the file's new address"),
        ("/forbidden", r"without an account \(403\); get the file with a browser"),
        ("/broken", r"answered 503 .*; wait a while and run again"),
        ("/to-a-local-file", r"not safe to follow.*; get the file with a browser"),
    ],
)
def test_refusals_come_with_a_cure(server: str, tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(DownloadError, match=message):
        download(server + path, tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    port = 1  # nothing listens on it
    with pytest.raises(DownloadError, match=r"http://127\.0\.0\.1:1/a could not be reached .*check the connection"):
        download(f"http://127.0.0.1:{port}/a", tmp_path / "a", timeout=5.0)


@pytest.mark.parametrize("error", [ssl.SSLEOFError(8, "EOF"), OSError(errno.ENETUNREACH, "Network is unreachable")])
def test_a_line_that_breaks_is_told_from_a_disk_that_does(
    error: OSError, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> bytes:
        raise error

    monkeypatch.setattr(http.client.HTTPResponse, "read", breaks)
    with pytest.raises(DownloadError, match=r"broke off .*; check the connection and run again"):
        download(server + "/file", tmp_path / "a")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        download(server + "/file", tmp_path / "nowhere" / "a")


def test_a_server_that_falls_silent_is_given_up(server: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"broke off \(.*timed out\); check the connection and run again"):
        download(server + "/silent", tmp_path / "a", timeout=0.1)


@pytest.mark.parametrize("path", ["/file", "/unannounced"])
def test_more_bytes_than_allowed_are_refused(server: str, tmp_path: Path, path: str) -> None:
    seen = [0]
    with pytest.raises(DownloadError, match=r"100,000 .*allowed; is it the right file\?$"):
        download(server + path, tmp_path / "a", limit=100_000, progress=lambda done, _: seen.append(done))
    assert max(seen) <= 100_000  # it stops there, and does not read on to the end
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/a", "a.csv"])
def test_only_http_addresses_are_opened(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="is not an http or https address"):
        download(url, tmp_path / "a")


def test_an_unknown_kind_of_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(CONTENT)
    assert matches(path, SHA256)
    assert matches(path, GIT)
    assert not matches(path, "sha256:00")
    with pytest.raises(DownloadError, match="is not a checksum; it starts with sha256: or git:"):
        matches(path, "md5:00")


def dataset(*files: StoredFile) -> Dataset:
    row = find("ETTh1")
    return Dataset(**{name: getattr(row, name) for name in row.__dataclass_fields__} | {"files": files})


def test_fetching_leaves_files_that_are_there_alone(server: str, tmp_path: Path) -> None:
    row = dataset(StoredFile(name="a.parquet"), StoredFile(name="a.csv", url=server + "/file", checksum=SHA256))
    folder = tmp_path / "new" / "folder"
    assert fetch(row, folder) == [folder / "a.csv"]
    assert fetch(row, folder) == [folder / "a.csv"]
    assert Handler.ranges == [None]  # one request


def test_every_part_that_can_be_had_is_fetched(server: str, tmp_path: Path) -> None:
    row = dataset(
        StoredFile(name="train.csv", part="train", url=server + "/file", checksum=GIT),
        StoredFile(name="test.csv", part="test", url=server + "/file"),
        StoredFile(name="naive2.parquet", part="naive2"),
    )
    assert [path.name for path in fetch(row, tmp_path)] == ["train.csv", "test.csv"]
    copied = fetch(row, tmp_path / "copy", from_dir=tmp_path)
    assert [path.name for path in copied] == ["train.csv", "test.csv"]


def test_files_from_a_folder_are_checked_too(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "folder"
    source.mkdir()
    row = dataset(StoredFile(name="a.csv", checksum=SHA256, url="http://127.0.0.1:1/never-asked"))
    with pytest.raises(DownloadError, match=r"source holds none of 'a\.csv' of ETTh1"):
        fetch(row, folder, from_dir=source)
    (source / "a.csv").write_bytes(b"another version")
    with pytest.raises(DownloadError, match=r"does not have the checksum .* of ETTh1; it is another version"):
        fetch(row, folder, from_dir=source)
    (source / "a.csv").write_bytes(CONTENT)
    assert fetch(row, folder, from_dir=source) == [folder / "a.csv"]
    assert (folder / "a.csv").read_bytes() == CONTENT


def test_a_set_without_an_address_tells_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"get it from https://.* as exchange_rate\.parquet or exchange_rate\.csv"):
        fetch(find("Exchange"), tmp_path)


def test_what_needs_no_download_says_so(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="Scenario1 needs no download: it is synthetic"):
        fetch(find("Scenario1"), tmp_path)
