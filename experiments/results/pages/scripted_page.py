"""Pages of this package: their templates, and the nonce that only their own scripts carry."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


def template(name: str) -> Template:
    """The Jinja template in the file `name` of this package; values are escaped, missing ones are errors."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    """One for all pages, since it keeps the templates that it has compiled."""
    return Environment(
        loader=PackageLoader("experiments.results", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def page_with_nonce(file: str, /, **values: Any) -> str:
    """The page of the template `file` with these values, which runs no scripts but those with its nonce.

    The nonce is a hash of the page without it: no text in the page can contain it.
    """
    page = template(file)
    nonce = hashlib.sha256(page.render(nonce="", **values).encode()).hexdigest()
    return page.render(nonce=nonce, **values)
