"""How right the diagnosis of pasted logs is: ``python tests/benchmarks/diagnosis.py CASES.jsonl [--part set-aside]``.

Each line of the file is one log with its label: ``{"id", "label", "secondary_labels", "confidence", "exit": {"signal",
"code"}, "stderr_tail", "kmsg"}``. A case counts as right when the best finding is its label; where the label's own confidence
is ``resolved_by_reporter`` or ``inferred``, also when it is one of the secondary labels or ``unknown``.

``--part set-aside`` takes the third of the cases (by a hash of their id) that the rules were written without; ``--part seen``
the others.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.exit_status import exit_status
from jupyter_tfguard.diagnosis.finding import Confidence
from jupyter_tfguard.diagnosis.pasted import Pasted
from tests.benchmarks.bench import machine

_LENIENT = ("resolved_by_reporter", "inferred")
_OUT_OF_MEMORY = {"host_oom", "cgroup_oom", "cpu_alloc_failure", "gpu_oom", "gpu_oom_other_process"}
_KILLED_FOR_MEMORY = {"host_oom", "cgroup_oom"}


@dataclass(frozen=True)
class Scored:
    """One case and its answer."""

    id: str
    label: str
    answer: str
    right: bool
    certain: bool
    secondary: tuple[str, ...]
    seconds: float

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
    lenient = case.get("confidence") in _LENIENT and best.cause in (*secondary, "unknown")
    right = best.cause == case["label"] or lenient
    certain = best.confidence is Confidence.CERTAIN
    return Scored(case["id"], case["label"], best.cause, right, certain, secondary, seconds)


def is_set_aside(case_id: str) -> bool:
    """True for a third of all ids, at random and always the same."""
    return int(hashlib.sha256(case_id.encode()).hexdigest(), 16) % 3 == 0


def cases(path: Path, part: str) -> Iterator[dict[str, Any]]:
    """The cases of a file, or of one part of it."""
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if part == "all" or is_set_aside(case["id"]) == (part == "set-aside"):
            yield case


def summary(scored: list[Scored]) -> dict[str, Any]:
    """All figures."""
    right = [s for s in scored if s.right]
    sure = [s for s in scored if s.certain]
    labels = sorted({s.label for s in scored})
    wrong = collections.Counter((s.label, s.answer) for s in scored if s.label != s.answer)
    times = sorted(s.seconds for s in scored)
    return {
        "cases": len(scored),
        "right": len(right),
        "accuracy": len(right) / len(scored),
        "certain": len(sure),
        "certain_and_wrong": sum(not s.right for s in sure),
        "right_and_certain_fraction": sum(s.certain for s in right) / max(1, len(right)),
        "false_oom": sum(s.false_oom for s in scored),
        "median_milliseconds": statistics.median(times) * 1000,
        "longest_milliseconds": times[-1] * 1000,
        "labels": {
            label: {
                "cases": sum(s.label == label for s in scored),
                "right": sum(s.label == label and s.right for s in scored),
            }
            for label in labels
        },
        "confused": [
            {"label": label, "answer": answer, "cases": count}
            for (label, answer), count in sorted(wrong.items())
        ],
    }


def main() -> None:
    """Score and print."""
    parser = argparse.ArgumentParser(description="Accuracy of the diagnosis of pasted logs")
    parser.add_argument("cases", type=Path, metavar="CASES.jsonl")
    parser.add_argument("--part", choices=("all", "seen", "set-aside"), default="all")
    parser.add_argument("--list", action="store_true", help="the cases that are not their label")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    scored = [score(case) for case in cases(chosen.cases, chosen.part)]
    if not scored:
        sys.exit(f"{chosen.cases} holds no case of this part")
    found = summary(scored)
    if chosen.json:
        print(json.dumps(found | machine(), indent=1))
        return
    print(f"{found['right']} of {found['cases']} right ({found['accuracy']:.1%})")
    print(
        f"certain: {found['certain']}, of these wrong {found['certain_and_wrong']}; "
        f"of the right ones {found['right_and_certain_fraction']:.0%} are certain"
    )
    print(f"said to be out of memory, and was not: {found['false_oom']}")
    print(
        f"a case takes {found['median_milliseconds']:.1f} ms (longest {found['longest_milliseconds']:.1f})\n"
    )
    print(f"{'label':32} {'cases':>5} {'right':>5}")
    for label, counts in found["labels"].items():
        print(f"{label:32} {counts['cases']:5} {counts['right']:5}")
    print("\nlabel, and what was answered instead")
    for row in found["confused"]:
        print(f"{row['label']:32} {row['answer']:32} {row['cases']}")
    if chosen.list:
        for s in scored:
            if s.label != s.answer:
                print(f"{'right' if s.right else 'WRONG'} {s.id}: {s.label}, answered {s.answer}")


if __name__ == "__main__":
    main()
