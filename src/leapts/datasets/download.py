"""Download data sets: resumable, verified by checksum, written atomically."""

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from leapts.datasets.catalogue import Dataset, StoredFile, files_of, stored_file
from leapts.errors import DownloadError
from leapts.files import move_file, write_file
from leapts.messages import listed, quoted

Progress = Callable[[int, int | None], None]

CHUNK_BYTES = 1 << 16
MAX_FILE_BYTES = 1 << 30  # bytes; the largest file of the catalogue has about 100 MB
TIMEOUT_SECONDS = 30.0
RANGE_NOT_SATISFIABLE = 416


def fetch(
    dataset: Dataset,
    folder: Path,
    *,
    from_dir: Path | None = None,
    progress: Progress | None = None,
    timeout: float = TIMEOUT_SECONDS,
) -> list[Path]:
    """Download the files of a data set, or copy them from a folder; existing files are kept.

    Args:
        dataset: The data set.
        folder: The target folder; created if missing.
        from_dir: A folder that has the files, to copy instead of downloading.
        progress: Called with the bytes received and, if known, the total.
        timeout: Seconds without data until the download fails.

    Returns:
        The files, one for each part that is available.
    """
    if dataset.kind != "files":
        raise DownloadError(f"{dataset.name} needs no download: it is {dataset.kind}, and loads by its name")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for part in dataset.parts:
        files = files_of(dataset, part)
        present = stored_file(dataset, folder, part)
        if present is not None:
            paths.append(present)
        elif from_dir is not None:
            paths.extend(_adopt_part(dataset, files, from_dir, folder))
        else:
            offered = [(file.url, file) for file in files if file.url is not None]
            paths.extend(
                download(url, folder / file.name, checksum=file.checksum, progress=progress, timeout=timeout)
                for url, file in offered[:1]
            )
    if not paths:
        raise DownloadError(
            f"{dataset.name} cannot be downloaded by a program; get it from {dataset.page} and put it in "
            f"{folder} as {' or '.join(file.name for file in dataset.files)}"
        )
    return paths


def download(
    url: str,
    target: Path,
    *,
    checksum: str | None = None,
    progress: Progress | None = None,
    timeout: float = TIMEOUT_SECONDS,
    limit: int = MAX_FILE_BYTES,
) -> Path:
    """Download one file.

    Data are kept in `<target>.part` until they are complete and verified, then renamed. An incomplete part of an
    earlier try is continued if there is a checksum (`sha256:` and the digest, or `git:` and the blob id), which proves
    that the pieces belong together.

    Raises:
        DownloadError: With what to do.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{quoted(url)} is not an http or https address")
    part = target.with_name(target.name + ".part")
    if checksum is None:
        part.unlink(missing_ok=True)
    try:
        _receive(url, part, progress=progress, timeout=timeout, limit=limit)
    except DownloadError:
        raise
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(_refusal(url, error.code, error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        if getattr(error, "filename", None) is not None:  # an error of the disk, not of the connection
            raise
        reason = getattr(error, "reason", error)
        kept = ": received data are kept" if checksum is not None else ""
        raise DownloadError(
            f"{url} could not be reached or broke off ({reason}); check the connection and run again{kept}"
        ) from error
    _require_checksum(part, checksum, url)
    move_file(part, target)
    return target


def matches(path: Path, checksum: str) -> bool:
    """Whether a file has the checksum: `sha256:` and its digest, or `git:` and its blob id."""
    kind, _, expected = checksum.partition(":")
    if kind == "sha256":
        digest = hashlib.sha256()
    elif kind == "git":
        digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    else:
        raise DownloadError(f"{quoted(checksum)} is not a checksum; it starts with sha256: or git:")
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest() == expected


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects only to http and https, and never from https to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        before, after = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if after not in ("http", "https") or (before, after) == ("https", "http"):
            fp.close()
            raise DownloadError(
                f"{req.full_url} leads to {quoted(newurl)}, which is not safe to follow; get the file with a browser"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _receive(url: str, part: Path, *, progress: Progress | None, timeout: float, limit: int) -> None:
    """Append to `part` until it has the length announced by the server."""
    done = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "leapts", "Accept-Encoding": "identity"}
    if done:
        headers["Range"] = f"bytes={done}-"
    opener = urllib.request.build_opener(_SafeRedirects)
    try:
        answer = opener.open(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code != RANGE_NOT_SATISFIABLE or not done:
            raise
        # The part is complete, which the checksum will show, or belongs to another file.
        error.close()
        if error.headers.get("Content-Range") == f"bytes */{done}":
            return
        part.unlink()
        _receive(url, part, progress=progress, timeout=timeout, limit=limit)
        return
    with answer:
        continues = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {done}-")
        done = done if continues else 0
        announced = answer.headers.get("Content-Length")
        total = done + int(announced) if announced and announced.isdigit() else None
        if total is not None and total > limit:
            raise DownloadError(
                f"{url} is {total:,} bytes long, more than the {limit:,} allowed; is it the right file?"
            )
        with part.open("ab" if continues else "wb") as file:
            while chunk := answer.read(CHUNK_BYTES):
                done += len(chunk)
                if done > limit:
                    break
                file.write(chunk)
                if progress is not None:
                    progress(done, total)
            file.flush()
            os.fsync(file.fileno())
    if done > limit:
        part.unlink()
        raise DownloadError(f"{url} sends more than the {limit:,} bytes allowed; is it the right file?")
    if total is not None and done != total:
        raise DownloadError(f"{url} broke off after {done:,} of {total:,} bytes; run again")


def _refusal(url: str, code: int, reason: str) -> str:
    if code in (404, 410):
        return f"{url} is not there any more ({code}); look for the file's new address on the data set's page"
    if code in (401, 403):
        return f"{url} may not be downloaded without an account ({code}); get the file with a browser"
    if code in (301, 302, 303, 307, 308):
        return f"{url} leads elsewhere, which is not safe to follow ({reason}); get the file with a browser"
    return f"{url} answered {code} ({reason}); wait a while and run again"


def _require_checksum(part: Path, checksum: str | None, url: str) -> None:
    if checksum is not None and not matches(part, checksum):
        part.unlink()
        raise DownloadError(
            f"{url} does not have the checksum {checksum}: the download was damaged, or the file has changed; "
            "run again, or get the file elsewhere"
        )


def _adopt_part(dataset: Dataset, files: list[StoredFile], from_dir: Path, folder: Path) -> list[Path]:
    """Copy the preferred file of a part that is in `from_dir`, after checking its checksum."""
    for file in files:
        source = from_dir / file.name
        if not source.is_file():
            continue
        if file.checksum is not None and not matches(source, file.checksum):
            raise DownloadError(
                f"{source} does not have the checksum {file.checksum} of {dataset.name}; it is another "
                "version, or damaged: copy it again"
            )
        write_file(folder / file.name, source.read_bytes())
        return [folder / file.name]
    if files[0].part != dataset.parts[0]:
        return []  # further parts, such as M4's test part, are optional
    raise DownloadError(f"{from_dir} holds none of {listed(file.name for file in files)} of {dataset.name}")
