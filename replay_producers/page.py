"""A plain page of sections, each with words, a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from matplotlib.figure import Figure

from replay_producers.figures import svg

_STYLE = """
:root { color-scheme: light; --line: #d9dee5; --soft: #5b6775; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2530; background: #fff; margin: 0 auto; padding: 2rem 1.2rem;
  max-width: 60rem; }
h1 { font-size: 1.7rem; margin: 0 0 .5rem; } h2 { font-size: 1.2rem; margin: 2.6rem 0 .3rem; }
p { margin: .3rem 0; } .about p, .note { color: var(--soft); } code { font-size: .85em; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .9rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { font-weight: 600; border-bottom-color: #8a95a3; } th:first-child, td:first-child { text-align: left; }
tbody tr:hover { background: #f4f7fa; } figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }
"""


@dataclass(frozen=True)
class Section:
    name: str  # of the picture's file, and the anchor
    title: str
    words: str
    table: str
    figure: Figure | None


def number(value: float | None, *, signed: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.2f}" if signed else f"{value:.2f}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(one)}</td>" for one in row) + "</tr>\n" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def page(title: str, about: Sequence[str], sections: Sequence[Section]) -> str:
    """`about` is HTML already."""
    told = "".join(f"<p>{line}</p>\n" for line in about if line)
    body = "\n".join(_section(section) for section in sections)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f'<body><h1>{escape(title)}</h1>\n<div class="about">{told}</div>\n{body}\n</body></html>\n'
    )


def _section(section: Section) -> str:
    picture = ""
    if section.figure is not None:
        picture = f'<figure role="img" aria-label="{escape(section.title)}">{svg(section.figure)}</figure>'
    words = f'<p class="note">{escape(section.words)}</p>'
    return (
        f'<section id="{section.name}"><h2>{escape(section.title)}</h2>\n{words}\n{section.table}\n{picture}</section>'
    )
