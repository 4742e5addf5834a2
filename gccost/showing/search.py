"""The page that searches all pages: their text by section, each with a link to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bs4.element import NavigableString, Tag

_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_UNSEEN = {"pre", "script", "style", "svg"}
_CONTROLS = {"code", "data", "file"}  # classes of what folds or downloads
_INLINE = {"a", "b", "code", "em", "i", "span", "strong", "sub", "sup"}


@dataclass
class Passage:
    """The text below a heading, or of a claim of the ledger; `anchor` is its id."""

    anchor: str
    title: str
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.parts).split())


def passages(page: Tag) -> list[Passage]:
    """The passages of a page in order, without code and without what is folded."""
    found = [Passage("", "")]
    for each in _walked(page):
        if isinstance(each, Passage):
            found.append(each)
        else:
            found[-1].parts.append(each)
    return [passage for passage in found if passage.title]


def _walked(tag: Tag) -> Iterator[Passage | str]:
    """The texts of an element, and a passage where one begins."""
    for child in tag.children:
        if isinstance(child, NavigableString):
            yield str(child)
            continue
        if not isinstance(child, Tag) or _is_unseen(child):
            continue
        if child.name in _HEADINGS:
            yield Passage(str(child["id"]), _text(child))
            continue
        summary = child.find("summary", recursive=False)
        is_folded = child.name == "details" and "open" not in child.attrs
        if "data-verdict" in child.attrs:
            words = child.select_one("summary")
            yield Passage(str(child["id"]), f"{_text(child.th)}: {_text(words)}")
        yield from _walked(summary if is_folded and summary else child)
        if child.name not in _INLINE:
            yield " "


def _is_unseen(tag: Tag) -> bool:
    classes = tag.get_attribute_list("class")
    return tag.name in _UNSEEN or not _CONTROLS.isdisjoint(classes)


def _text(tag: Tag | None) -> str:
    return " ".join(tag.get_text(" ").split()) if tag else ""
