"""As much of a page as a reader sees: elements, and the text in them."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


class Element:
    """One element. ``text`` is what stands in it, without what only a screen reader says."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag, self.attributes = tag, attributes
        self.children: list[Element | str] = []

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def text(self) -> str:
        parts = [
            child if isinstance(child, str) else child.text
            for child in self.children
            if isinstance(child, str) or "sr" not in child.classes
        ]
        return " ".join(" ".join(parts).split())

    @property
    def elements(self) -> list[Element]:
        """The elements just below this one."""
        return [child for child in self.children if isinstance(child, Element)]

    def all(self, tag: str, of_class: str = "", **attributes: str) -> list[Element]:
        """The elements below this one, in order; attribute names with ``_`` for ``-``."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            element
            for element in self._below()
            if element.tag == tag
            and (not of_class or of_class in element.classes)
            and wanted.items() <= element.attributes.items()
        ]

    def one(self, tag: str, of_class: str = "", **attributes: str) -> Element:
        """The only such element."""
        [found] = self.all(tag, of_class, **attributes)
        return found

    def _below(self) -> Iterator[Element]:
        for child in self.elements:
            yield child
            yield from child._below()


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while self._open[-1].tag != tag:  # </li> and </p> may be left out
            self._open.pop()
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def parse(text: str) -> Element:
    """The page's root."""
    builder = _Builder()
    builder.feed(text)
    builder.close()
    return builder.root
