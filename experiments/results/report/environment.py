"""How the pages' templates are read: every name is escaped, and one that is missing is an error."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


def template(name: str) -> Template:
    """The template of that file name in this package."""
    environment = Environment(
        loader=PackageLoader("experiments.results", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
