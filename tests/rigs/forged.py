"""Recordings that a notebook made up, published as orphans and against what a server saw.

    python tests/rigs/forged.py --count 1000 --seed 1 --json

The forger may write anything into the folder of its own kernel: huge and wrong values, kernel-log lines in its stderr,
counters and signals that never were, links, endless files. `{"forged", "crashes", "wrong_certain", "touched",
"shown", "slowest_seconds", "grown_bytes"}`: a certain cause is wrong when the server's facts alone do not give it;
`touched` is what changed, or was read into a report, of a tree outside; `shown` are reports with control characters.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import resource
import shutil
import tempfile
import time
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jupyter_tfguard import shield
from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.finding import Confidence
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.facts import Counters, ExitFacts, GroupCounters, ServerFacts, SystemLog
from jupyter_tfguard.report import text
from jupyter_tfguard.server.notify import log_crash
from jupyter_tfguard.watch.death import Death
from jupyter_tfguard.watch.live import LiveReader
from tests.rigs.forger import COUNT, SECRET, Forger, outside_tree

_GIB = 1 << 30
# Control characters, marks of the writing direction, halves of characters, ends of lines and paragraphs.
_NOT_SHOWN = ("Cc", "Cf", "Cs", "Zl", "Zp")


@dataclass
class Result:
    """What came of all of it."""

    forged: int = 0
    reports: int = 0
    crashes: list[str] = field(default_factory=list)
    wrong_certain: list[str] = field(default_factory=list)
    touched: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    slowest_seconds: float = 0.0
    grown_bytes: int = 0


def server_facts(number: int) -> ServerFacts:
    """What a server may have seen, one case after the other; each contradicts most of what is forged."""
    before = Counters(
        time.time() - 1,
        (GroupCounters("/g", 2, True, _GIB, 1000, 2000, 0, 3, 5),),
        7,
        8 * _GIB,
        16 * _GIB,
    )
    killed = replace(before, groups=(replace(before.groups[0], oom_count=1, oom_kill_count=4),))
    kill = ExitFacts("SIGKILL", None, "waitid")
    cases: tuple[tuple[ExitFacts | None, Counters], ...] = (
        (kill, before),
        (kill, killed),
        (ExitFacts(None, 0, "waitid"), before),
        (ExitFacts(None, 7, "waitid"), before),
        (ExitFacts("SIGSEGV", None, "waitid"), before),
        (ExitFacts("SIGTERM", None, "waitid"), before),
        (ExitFacts("SIGABRT", None, "waitid"), before),
        (ExitFacts("SIGBUS", None, "waitid"), killed),
        (None, before),
    )  # fmt: skip
    told, after = cases[number % len(cases)]
    return ServerFacts(
        exit=told,
        died=time.time(),
        columns=("time", "process.rss_bytes"),
        rows=((time.time() - 1, 2e8),),
        before=before,
        after=after,
        ended_neighbours=() if number % 2 else None,
    )


class Publisher:
    """Takes one forgery through everything that reads it, and looks at what came out."""

    def __init__(self, base: Path, outside: Path, result: Result) -> None:
        self.base = base
        self.outside = outside
        self.result = result
        self.before = _tree(outside)

    def orphan(self, forger: Forger) -> None:
        """Nobody saw the death."""
        for store in self._published(
            forger, lambda root, store: Postmortem(root, store, TfGuard()).handle_unwatched()
        ):
            for report in self._reports(store):
                found = [report, *report["other_findings"]]
                if any(f["confidence"] == "certain" for f in found):
                    self.result.wrong_certain.append(f"orphan: {report['cause']}")

    def seen(self, forger: Forger, number: int) -> None:
        """A server saw it, and knows better."""
        facts = server_facts(number)
        log: list[str] = []
        logger = logging.Logger("forged")
        handler = logging.Handler()
        handler.emit = lambda record: log.append(record.getMessage())  # type: ignore[method-assign]
        logger.addHandler(handler)
        known = SystemLog(True)
        alone = capture(identity=forger.identity, server=facts, system_log=known)
        # Some causes need a recording that shows nothing else; an empty one claims nothing.
        allowed = {
            finding.cause
            for bundle in (alone, alone | {"kernel": {"header": {}}})
            for finding in diagnose(bundle).findings
            if finding.confidence is Confidence.CERTAIN
        }

        def report(root: Path, store: BundleStore) -> None:
            folder = root / forger.identity.folder_name
            live = LiveReader(folder)
            json.dumps(live.read().training, allow_nan=False)
            live.close()
            told = Death(forger.identity, "k", "python3", None, folder, facts, known)
            failures: list[Exception] = []
            postmortem = Postmortem(
                root,
                store,
                TfGuard(),
                on_report=lambda entry: log_crash(logger, entry),
                on_failure=lambda death, bad: failures.append(bad),
            )
            postmortem.handle(told)
            if failures:
                raise failures[0]

        for store in self._published(forger, report):
            for found in self._reports(store):
                for finding in (found, *found["other_findings"]):
                    if finding["confidence"] == "certain" and finding["cause"] not in allowed:
                        self.result.wrong_certain.append(f"server {number}: {finding['cause']}")
        self.result.shown += [line for line in log if not line.isprintable()]

    def _published(
        self, forger: Forger, publish: Callable[[Path, BundleStore], Any]
    ) -> Iterator[BundleStore]:
        data = Path(tempfile.mkdtemp(dir=self.base))
        os.environ["TFGUARD_DIR"] = str(data)
        shield._noted.clear()
        root = data / "recordings"
        root.mkdir(mode=0o700)
        store = BundleStore(data / "bundles")
        try:
            forger.forge(root)
            began = time.process_time()
            publish(root, store)
            took = time.process_time() - began
            self.result.slowest_seconds = max(self.result.slowest_seconds, took)
            yield store
            self._look_around(data)
        except Exception:
            self.result.crashes.append(traceback.format_exc()[-1500:])
        finally:
            shutil.rmtree(data, ignore_errors=True)

    def _reports(self, store: BundleStore) -> Iterator[dict[str, Any]]:
        for entry in store.entries():
            self.result.reports += 1
            report = store.report(entry["id"])
            shown = text.render(report), text.markdown(report)
            for page in shown:
                page.encode()
                bad = {c for c in page if unicodedata.category(c) in _NOT_SHOWN and c not in "\n\t"}
                if bad:
                    self.result.shown.append(f"{sorted(bad)!r}")
            json.dumps(report, allow_nan=False)
            yield report

    def _look_around(self, data: Path) -> None:
        if _tree(self.outside) != self.before:
            self.result.touched.append("changed")
        for path in data.rglob("*.json"):
            kept = path.is_file() and not path.is_symlink() and "bundles" in path.parts
            if kept and any(word in path.read_text(errors="replace") for word in (SECRET, COUNT)):
                self.result.touched.append(f"read into {path.name}")


def _tree(folder: Path) -> list[tuple[str, int, int, bytes]]:
    return [
        (str(p), p.lstat().st_mode, p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
        for p in sorted(folder.rglob("*"))
    ]


def run(count: int, seed: int) -> Result:
    """Forge and publish that many recordings, each both ways."""
    result = Result()
    base = Path(tempfile.mkdtemp(prefix="tfguard-forged-"))
    kept = os.environ.get("TFGUARD_DIR")
    try:
        publisher = Publisher(base, outside_tree(base), result)
        for number in range(count):
            if number == min(20, count - 1):
                grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            name = f"{seed}/{number}"
            publisher.orphan(Forger(random.Random(name), publisher.outside))
            publisher.seen(Forger(random.Random(name), publisher.outside), number)
            result.forged += 1
        result.grown_bytes = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown)
    finally:
        shutil.rmtree(base, ignore_errors=True)
        os.environ.pop("TFGUARD_DIR")
        if kept is not None:
            os.environ["TFGUARD_DIR"] = kept
    return result


def main() -> int:
    """From the command line. Exit code 1 when anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    told = vars(run(chosen.count, chosen.seed))
    print(json.dumps(told) if chosen.json else told)
    return 1 if told["crashes"] or told["wrong_certain"] or told["touched"] or told["shown"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
