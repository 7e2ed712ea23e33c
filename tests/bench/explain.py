"""How right the diagnosis of pasted logs is: ``python -m tests.bench.explain [CASES.jsonl ...]``.

Each line of a file is one log with its label: ``{"id", "label", "secondary_labels", "confidence", "exit": {"signal",
"code"}, "stderr_tail", "kmsg"}``. Without a file, the logs of ``explain_logs.jsonl`` are scored; they are invented.

A case is *right* when the best finding is its label; where the label's own confidence is ``resolved_by_reporter`` or
``inferred``, also when it is one of the secondary labels or ``unknown``. Two stricter counts stand beside it: *unknown is
wrong* does not accept ``unknown`` for another label, and *strict* accepts the label alone.

The cases are scored in two parts. *Unseen* are a third of all ids, at random and always the same: the rules were written
without a look at them one by one. ``--list`` shows those of the seen part only.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.exit_status import exit_status
from jupyter_tfguard.diagnosis.finding import Confidence
from jupyter_tfguard.diagnosis.pasted import Pasted
from tests.bench.bench import machine

INVENTED = Path(__file__).with_name("explain_logs.jsonl")
_LENIENT = ("resolved_by_reporter", "inferred")
_OUT_OF_MEMORY = {"host_oom", "cgroup_oom", "cpu_alloc_failure", "gpu_oom", "gpu_oom_other_process"}
_KILLED_FOR_MEMORY = {"host_oom", "cgroup_oom"}
# Causes that are a special case of an older one: sets that were labelled before have only the older one.
_NARROWER = {
    "memory_daemon": "terminated_by_user_or_manager",
    "storage_limit": "terminated_by_user_or_manager",
}


@dataclass(frozen=True)
class Scored:
    """One case and its answer."""

    id: str
    label: str
    answer: str
    lenient: bool
    certain: bool
    secondary: tuple[str, ...]
    seconds: float

    @property
    def strict(self) -> bool:
        """True when the answer is the label."""
        return self.label in (self.answer, _NARROWER.get(self.answer))

    @property
    def right(self) -> bool:
        """True when the answer is the label, or as good as the label itself is sure."""
        forgiven = self.answer in self.secondary or self.answer == "unknown"
        return self.strict or (self.lenient and forgiven)

    @property
    def answered(self) -> bool:
        """True when it is right and `unknown` is not accepted for another label."""
        return self.right and (self.strict or self.answer != "unknown")

    @property
    def false_oom(self) -> bool:
        """True when the answer is a kill for memory or a lack of memory, and neither label says so."""
        wanted = {self.label, *self.secondary}
        if self.answer in _KILLED_FOR_MEMORY:
            return not wanted & _KILLED_FOR_MEMORY
        return self.answer in _OUT_OF_MEMORY and not wanted & _OUT_OF_MEMORY


def score(case: dict[str, Any]) -> Scored:
    """Diagnose one case."""
    ended = case.get("exit") or {}
    status = exit_status(ended.get("signal"), ended.get("code"))
    began = time.process_time()
    best = explain(Pasted(case["stderr_tail"], case.get("kmsg") or "", status)).best
    seconds = time.process_time() - began
    secondary = tuple(case.get("secondary_labels") or ())
    certain = best.confidence is Confidence.CERTAIN
    lenient = case.get("confidence") in _LENIENT
    return Scored(case["id"], case["label"], best.cause, lenient, certain, secondary, seconds)


def is_unseen(case_id: str) -> bool:
    """True for a third of all ids, at random and always the same."""
    return int(hashlib.sha256(case_id.encode()).hexdigest(), 16) % 3 == 0


def summary(scored: list[Scored]) -> dict[str, Any]:
    """All figures of one part."""
    right = [s for s in scored if s.right]
    sure = [s for s in scored if s.certain]
    times = sorted(s.seconds for s in scored)
    wrong = collections.Counter((s.label, s.answer) for s in scored if not s.strict)
    return {
        "cases": len(scored),
        "right": len(right),
        "unknown_is_wrong": sum(s.answered for s in scored),
        "strict": sum(s.strict for s in scored),
        "certain": len(sure),
        "certain_and_wrong": sum(not s.right for s in sure),
        "right_and_certain": sum(s.certain for s in right),
        "false_oom": sum(s.false_oom for s in scored),
        "median_milliseconds": statistics.median(times) * 1000,
        "longest_milliseconds": times[-1] * 1000,
        "labels": {
            label: {
                "cases": sum(s.label == label for s in scored),
                "right": sum(s.label == label and s.right for s in scored),
            }
            for label in sorted({s.label for s in scored})
        },
        "not_strict": [
            {"label": label, "answer": answer, "cases": count}
            for (label, answer), count in sorted(wrong.items())
        ],
    }


def parts_of(path: Path) -> dict[str, list[Scored]]:
    """The scored cases of a file, seen and unseen; a part without a case is left out."""
    lines = path.read_text(encoding="utf-8").splitlines()
    scored = [score(json.loads(line)) for line in lines if line.strip()]
    parts = {
        "seen": [s for s in scored if not is_unseen(s.id)],
        "unseen": [s for s in scored if is_unseen(s.id)],
    }
    return {name: found for name, found in parts.items() if found}


def _print(path: Path, parts: dict[str, list[Scored]], *, listed: bool) -> None:
    print(path.name)
    print(
        f"  {'part':8} {'cases':>5} {'right':>13} {'unknown wrong':>14} {'strict':>13} {'certain':>8} {'wrong':>6} {'false OOM':>10}"
    )
    for name, scored in parts.items():
        s = summary(scored)

        def share(key: str, s: dict[str, Any] = s) -> str:
            return f"{s[key]} ({s[key] / s['cases']:.1%})"

        print(
            f"  {name:8} {s['cases']:5} {share('right'):>13} {share('unknown_is_wrong'):>14} {share('strict'):>13}"
            f" {s['certain']:8} {s['certain_and_wrong']:6} {s['false_oom']:10}"
        )
    seconds = [s.seconds for scored in parts.values() for s in scored]
    print(
        f"  a case takes {statistics.median(seconds) * 1000:.1f} ms (longest {max(seconds) * 1000:.1f})\n"
    )
    for case in parts.get("seen", ()) if listed else ():
        if not case.strict:
            sure = ", certain" if case.certain else ""
            word = "right" if case.right else "WRONG"
            print(f"  {word} {case.id}: {case.label}, answered {case.answer}{sure}")


def main() -> None:
    """Score and print."""
    parser = argparse.ArgumentParser(description="Accuracy of the diagnosis of pasted logs")
    parser.add_argument("cases", type=Path, nargs="*", metavar="CASES.jsonl", default=[INVENTED])
    parser.add_argument("--list", action="store_true", help="seen cases that are not their label")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    found: dict[str, Any] = {}
    for path in chosen.cases:
        parts = parts_of(path)
        if not parts:
            sys.exit(f"{path} holds no case")
        found[path.name] = {name: summary(scored) for name, scored in parts.items()}
        if not chosen.json:
            _print(path, parts, listed=chosen.list)
    if chosen.json:
        print(json.dumps(found | machine(), indent=1))


if __name__ == "__main__":
    main()
