"""Runs the Python blocks of a page in one namespace, as a notebook does: a process of `play_blocks.py`.

    python namespace.py REQUESTS RESPONSES

reads blocks as lines of JSON from one file descriptor, and answers each on the other, with its traceback if
it has failed. A value in the last line of a block is shown. Knows nothing but Python, so that any environment
can start it.
"""

from __future__ import annotations

import ast
import json
import linecache
import os
import sys
import traceback
import types
from typing import Any


def main(requests: int, responses: int) -> None:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.path[0] = ""
    with os.fdopen(requests, encoding="utf-8") as given, os.fdopen(responses, "w", encoding="utf-8") as out:
        for line in given:
            request = json.loads(line)
            error = run(request["code"], request["page"], request["line"], module.__dict__)
            sys.stdout.flush()
            sys.stderr.flush()
            print(json.dumps({"error": error}), file=out, flush=True)


def run(code: str, page: str, line: int, namespace: dict[str, Any]) -> str:
    """Run a block whose first line is this one of its page; its traceback if it fails, else nothing."""
    remember_lines(code, page, line)
    try:
        tree = ast.parse("\n" * (line - 1) + code, page)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, page, "exec"), namespace)
        if last is not None:
            show(eval(compile(ast.Expression(last.value), page, "eval"), namespace))
    except BaseException as error:
        if isinstance(error, SystemExit) and error.code in (None, 0):
            return ""
        shown = error.__traceback__
        while shown is not None and shown.tb_frame.f_code.co_filename == __file__:
            shown = shown.tb_next
        return "".join(traceback.format_exception(type(error), error, shown))
    return ""


def remember_lines(code: str, page: str, line: int) -> None:
    """Have tracebacks show the lines of a block, beside those of earlier ones."""
    known = linecache.cache.get(page)
    lines = list(known[2]) if known is not None else []
    added = code.splitlines(keepends=True)
    lines += ["\n"] * (line - 1 + len(added) - len(lines))
    lines[line - 1 : line - 1 + len(added)] = added
    linecache.cache[page] = (sum(map(len, lines)), None, lines, page)


def show(value: Any) -> None:
    """Show a value as a notebook does, which may fail."""
    if value is None:
        return
    as_html = getattr(value, "_repr_html_", None)
    if callable(as_html) and not isinstance(value, type):
        as_html()
    print(repr(value))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
