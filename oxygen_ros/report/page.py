# SPDX-License-Identifier: Apache-2.0
"""One HTML page that needs nothing else: styles and pictures are inside."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from ..figures.claims import ClaimFigure, Outcome
from .drawing import Picture

# Nothing may be fetched, whatever a text of the recording tries.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#22272e;background:#f4f5f7;margin:0}
main{max-width:1020px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;margin:0 0 2px} h2{font-size:18px;margin:34px 0 10px}
.source{color:#5b626c;overflow-wrap:anywhere}
section,figure{background:#fff;border:1px solid #dfe2e6;border-radius:8px;margin:14px 0;
padding:14px 18px}
figure img{width:100%;height:auto;display:block}
figcaption{color:#5b626c;font-size:13.5px;margin-top:4px}
figure h3{font-size:16px;margin:0 0 6px}
table{border-collapse:collapse;width:100%}
th{color:#5b626c;font-weight:600;text-align:left;font-size:13px}
th,td{padding:5px 10px 5px 0;border-bottom:1px solid #edeff2;vertical-align:top}
td.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.met,td.not_met,td.no_figure{white-space:nowrap}
.met{color:#1d7d3f}.not_met{color:#c0262b}.no_figure{color:#8a8f98}
summary{cursor:pointer;font-weight:600} .warning{border-color:#d99000}
code{font-size:13px}
"""


@dataclass(slots=True)
class Page:
    """What is put on the page."""

    title: str
    source: str
    notes: Sequence[str]  # a line each; what was lost, what was left out
    claims: Sequence[ClaimFigure]
    pictures: Sequence[Picture]
    figures: Mapping[str, float]
    texts: Mapping[str, str] = field(default_factory=dict)


def render(page: Page) -> str:
    """Return the page."""
    parts = [
        '<!DOCTYPE html>',
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
        '<meta name="viewport" content="width=device-width">',
        f'<title>{escape(page.title)}</title><style>{_STYLE}</style></head><body><main>',
        f'<h1>{escape(page.title)}</h1><p class="source">{escape(page.source)}</p>',
    ]
    if page.notes:
        lines = ''.join(f'<div>{escape(note)}</div>' for note in page.notes)
        parts.append(f'<section class="warning">{lines}</section>')
    parts += ['<h2>Against the claims</h2>', _claims(page.claims)]
    if page.pictures:
        parts.append('<h2>Plots</h2>')
        parts += [_figure(picture) for picture in page.pictures]
    parts += ['<h2>All figures</h2>', _figures(page.figures, page.texts), '</main></body></html>']
    return '\n'.join(parts) + '\n'


def _claims(claims: Sequence[ClaimFigure]) -> str:
    rows = []
    for found in claims:
        claim = found.claim
        mark = found.outcome.value
        claimed = claim.claimed + (f'; {found.note}' if found.note else '')
        name = found.outcome.name.lower()
        source = f'<code>{escape(found.name)}</code>' if found.name else ''
        rows.append(
            f'<tr><td>{claim.requirement}</td><td>{escape(claim.what)}</td>'
            f'<td>{escape(claimed)}</td><td class="number">{escape(found.text)}</td>'
            f'<td class="{name}">{mark}</td><td>{source}</td></tr>'
        )
    head = '<tr><th></th><th>claim</th><th>claimed</th><th>here</th><th></th><th>figure</th></tr>'
    count = {outcome: sum(found.outcome is outcome for found in claims) for outcome in Outcome}
    line = ', '.join(f'{number} {outcome.value}' for outcome, number in count.items() if number)
    return f'<section><p>{line}</p><table>{head}{"".join(rows)}</table></section>'


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode('ascii')
    return (
        f'<figure><h3>{escape(picture.title)}</h3>'
        f'<img alt="{escape(picture.title)}" src="data:image/png;base64,{data}">'
        f'<figcaption>{escape(picture.caption)}</figcaption></figure>'
    )


def _figures(figures: Mapping[str, float], texts: Mapping[str, str]) -> str:
    # data-value holds every digit: the page can be read by a program.
    rows = [
        f'<tr><td><code>{escape(name)}</code></td><td class="number" '
        f'data-name="{escape(name)}" data-value="{value!r}">{_short(value)}</td></tr>'
        for name, value in figures.items()
    ]
    rows += [
        f'<tr><td><code>{escape(name)}</code></td><td>{escape(text)}</td></tr>'
        for name, text in texts.items()
    ]
    return (
        f'<section><details><summary>{len(rows)} figures</summary><table>'
        f'{"".join(rows)}</table></details></section>'
    )


def _short(value: float) -> str:
    if isinstance(value, int) or value.is_integer():
        return f'{value:,.0f}'
    return f'{value:,.4g}' if abs(value) < 1e5 else f'{value:,.1f}'
