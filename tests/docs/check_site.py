"""Checks the built site (`make docs`): pages contact no host, hang together, and can be read without seeing.

    python tests/docs/check_site.py build/site

Prints each mistake with its file, and ends with exit code 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"src", "srcset", "poster", "data", "background", "manifest", "action", "formaction", "ping"}
"""Attributes whose address a browser contacts by itself, or that sends what a reader types."""

_HOST = re.compile(r"(?:https?:)?//[\w.-]+\.\w+", re.IGNORECASE)
_IN_STYLES = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\s\"')]+)", re.IGNORECASE)
_IN_SCRIPTS = re.compile(r"[\"'`]((?:https?|wss?):)?//(?!www\.w3\.org/)[\w.-]+\.\w+", re.IGNORECASE)
_COMMENTS = re.compile(r"/\*.*?\*/|^\s*//[^\n]*", re.DOTALL | re.MULTILINE)


class BuiltPage(HTMLParser):
    """A page as it was built: addresses, ids, headings, and mistakes that it has by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.mistakes: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.levels: list[int] = []
        self._element = ""
        self.feed(text)
        self._check_headings()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element = tag
        attributes = {name: value or "" for name, value in attrs}
        if name := attributes.get("id"):
            if name in self.ids:
                self.mistakes.append(f"two elements have the id {name}")
            self.ids.add(name)
        loaded = {name: value for name, value in attributes.items() if name in LOADED}
        if tag in ("link", "base", "image", "use"):
            loaded |= {name: value for name, value in attributes.items() if name.endswith("href")}
        for name, value in loaded.items():
            if _HOST.search(value) and not value.startswith("data:"):
                self.mistakes.append(f"<{tag}> contacts a host: {name}={value}")
        self.mistakes += [
            f"<{tag}> contacts a host: {host}" for host in hosts_of_styles(attributes.get("style", ""))
        ]
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag == "img" and not attributes.get("alt", "").strip():
            self.mistakes.append(f"a picture without a text: {attributes.get('src')}")
        if tag == "html" and not attributes.get("lang"):
            self.mistakes.append("a page without a language")
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))

    def handle_data(self, data: str) -> None:
        hosts = {"style": hosts_of_styles, "script": hosts_of_scripts}.get(self._element, lambda text: [])(
            data
        )
        self.mistakes += [f"<{self._element}> contacts a host: {host}" for host in hosts]

    def _check_headings(self) -> None:
        if self.levels.count(1) != 1 or self.levels[0] != 1:
            self.mistakes.append(f"one heading of level 1, and first: levels are {self.levels}")
        for above, level in zip(self.levels, self.levels[1:], strict=False):
            if level > above + 1:
                self.mistakes.append(f"a heading of level {level} follows level {above}")


def hosts_of_styles(text: str) -> list[str]:
    return _IN_STYLES.findall(_COMMENTS.sub("", text))


def hosts_of_scripts(text: str) -> list[str]:
    return [match[0][1:] for match in _IN_SCRIPTS.finditer(_COMMENTS.sub("", text))]


def mistakes(site: Path) -> list[str]:
    """`file: what is wrong` of each mistake in the files below `site`."""
    pages = {
        path.resolve(): BuiltPage(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))
    }
    found = [(path, text) for path, page in pages.items() for text in page.mistakes]
    found += [(path, text) for path, page in pages.items() for text in _broken_links(path, page, pages)]
    for path in sorted(site.rglob("*")):
        hosts = {".css": hosts_of_styles, ".svg": hosts_of_styles, ".js": hosts_of_scripts}.get(path.suffix)
        if hosts:
            text = path.read_text(encoding="utf-8")
            found += [(path.resolve(), f"contacts a host: {host}") for host in hosts(text)]
    return [f"{path.relative_to(site.resolve())}: {text}" for path, text in found]


def _broken_links(path: Path, page: BuiltPage, pages: dict[Path, BuiltPage]) -> list[str]:
    broken = []
    for link in page.links:
        address = urlsplit(link)
        if address.scheme or address.netloc:
            continue
        linked = (path.parent / unquote(address.path)).resolve() if address.path else path
        if not linked.is_file():
            broken.append(f"a link leads nowhere: {link}")
        elif address.fragment and linked in pages and unquote(address.fragment) not in pages[linked].ids:
            broken.append(f"a link leads to no anchor: {link}")
    return broken


def main() -> None:
    site = Path(sys.argv[1])
    found = mistakes(site)
    print(*found, sep="\n", end="\n" if found else "")
    if found:
        sys.exit(1)
    print(f"ok: {len(list(site.rglob('*.html')))} pages contact no host; begin at {site / 'index.html'}")


if __name__ == "__main__":
    main()
