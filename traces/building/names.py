"""Names of clients and classes that a trace folder can hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emulator.errors import InputError
from emulator.storage.bounded import has_controls
from traces.building.rows import Rows
from traces.files.arrivals import MOST_CLASSES


def refuse_unnamed(rows: Rows) -> None:
    """Raise InputError for a client or a label that has no name, as a data set of one's own may list them."""
    for what, codes, names in (("client", rows.client, rows.clients), ("label", rows.label, rows.classes)):
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(names):
            raise InputError(
                f"{what}s are {codes.min()} to {codes.max()}, and there are {len(names)} names of {what}s"
            )


def refuse_names(clients: Iterable[str], classes: Sequence[str]) -> None:
    """Raise InputError if there are too many classes, or a name of a client or a class cannot be written."""
    if len(classes) > MOST_CLASSES:
        raise InputError(f"the data set has {len(classes)} classes; at most {MOST_CLASSES}")
    for what, names in (("client", clients), ("class", classes)):
        for name in names:
            try:
                name.encode()
            except UnicodeEncodeError as error:
                raise InputError(f"{what} {name!r}: is no text in UTF-8; rename it") from error
            if not name.strip() or has_controls(name):
                raise InputError(f"{what} {name!r}: is no name: it is blank, or has control characters")
