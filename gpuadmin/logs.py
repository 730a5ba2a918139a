"""Log lines that a hostile name or message cannot forge."""

import logging
import re

# C0, DEL, C1, line and paragraph separators, and the marks that turn the direction of text.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def one_line(text: str) -> str:
    """The text with each control character written as its escape, so that it stays one line."""
    return _UNPRINTABLE.sub(lambda found: repr(found.group())[1:-1], text)


class OneLineFormatter(logging.Formatter):
    """One record is one line; the lines of a traceback follow behind a bar."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's own name
        record.message = one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802  logging's own name
        lines = super().formatException(ei).split("\n")  # type: ignore[arg-type]
        return "\n".join(f"  | {one_line(line)}" for line in lines)
