"""How many invented secrets redaction removes, and how many harmless lines it changes.

    python -m tests.bench.redaction [--missed]

The secrets of a line must be gone from what is kept on disk; names, addresses and homes from what is exported. The lines
"aside" were written with the others and not looked at while the rules were made. Those "later", "unseen", "last" and "fresh" were
written afterwards; their first scores are in ``RESULTS.md``, and then the rules learned their kinds.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field

from jupyter_tfguard.redact import redact
from jupyter_tfguard.report.anonymous import Anonymous, Identity
from jupyter_tfguard.report.suspicious import suspicious
from tests.rigs.redaction_corpus import Line, lines

SECRETS = (
    "secrets",
    "secrets_aside",
    "secrets_later",
    "secrets_unseen",
    "secrets_last",
    "secrets_fresh",
    "secrets_fresh_aside",
)
HARMLESS = ("harmless", "harmless_aside", "harmless_later", "harmless_fresh")
LEAST_RECALL = 0.97
MOST_FALSE = 0.01
ANN = ("/home/ann", "ann", "gpu01.cluster.example")


@dataclass
class Score:
    """Result for one file.

    Attributes:
        total: Lines. changed: Lines without their secret, or harmless lines that were changed.
        flagged: Lines in which something is left that an export flags.
        kinds: Total and changed lines per section.
        wrong: Lines with a secret left, or changed without one.
    """

    total: int = 0
    changed: int = 0
    flagged: int = 0
    kinds: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def score(name: str) -> Score:
    """Redact each line of a file of the corpus."""
    anonymous = Anonymous(Identity(*ANN))
    found = Score()
    for line in lines(f"{name}.txt"):
        left = _kept(line, anonymous)
        is_secret = bool(line.secrets or line.personal)
        changed = not line.left_in(left) if is_secret else left != line.text
        kind = found.kinds.setdefault(line.kind, Counter())
        kind.update(total=1, changed=int(changed))
        found.total += 1
        found.changed += changed
        found.flagged += bool(suspicious(left))
        if changed != is_secret:
            found.wrong.append(line.template)
    return found


def _kept(line: Line, anonymous: Anonymous) -> str:
    return redact(line.text) if line.secrets else anonymous.text(line.text)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--missed", action="store_true", help="print the wrong lines, except of the lines aside"
    )
    chosen = parser.parse_args()
    for name in (*SECRETS, *HARMLESS):
        found = score(name)
        print(
            f"{name:<19} {found.changed:>4} of {found.total} changed ({found.changed / found.total:.1%}), "
            f"{found.flagged} flagged in what is left"
        )
        for kind, counts in found.kinds.items():
            print(f"    {kind:<28} {counts['changed']:>4} of {counts['total']}")
        if chosen.missed and not name.endswith("aside"):
            print("".join(f"      {line}\n" for line in found.wrong), end="")


if __name__ == "__main__":
    main()
