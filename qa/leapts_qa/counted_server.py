"""Run `leapts serve` and print at its end how many requests it has read, all of which it must answer."""

import json
import sys

from leapts.cli import run
from leapts.server import running
from leapts.server.connections import LimitedProtocol


class _Counted(LimitedProtocol):
    read = 0

    def on_message_complete(self) -> None:
        _Counted.read += 1
        super().on_message_complete()


if __name__ == "__main__":
    vars(running)[LimitedProtocol.__name__] = _Counted
    code = run(sys.argv[1:])
    print(json.dumps({"read": _Counted.read}))
    sys.exit(code)
