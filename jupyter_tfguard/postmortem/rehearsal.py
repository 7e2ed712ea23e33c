"""Loads everything that a report needs: after an upgrade, the files on disk no longer fit those that are loaded."""

from __future__ import annotations

import importlib
import pkgutil
import time
from importlib import resources

from .. import collectors, diagnosis, record, redact, report
from ..diagnosis import catalog, rules
from ..diagnosis.catalog import toml_file
from ..diagnosis.diagnose import diagnose
from ..record.facts import ExitFacts, ServerFacts, SystemLog
from ..record.identity import ProcessIdentity
from ..report import html
from ..report.anonymous import Identity
from ..report.choices import Choices
from ..report.export import export, shared_markdown
from ..report.wire import to_entry_and_report
from .capture import capture

_PACKAGES = (collectors, diagnosis, record, redact, report)


def rehearse() -> None:
    """Import all modules and tables, and make the report of a made-up crash in memory. Takes a fraction of a second."""
    for package in _PACKAGES:
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    for package in (catalog, rules):
        for path in resources.files(package).iterdir():
            if path.name.endswith(".toml"):
                toml_file(package.__name__, path.name.removesuffix(".toml"))
    facts = ServerFacts(exit=ExitFacts("SIGKILL", None, "waitid"), died=time.time())
    bundle = capture(identity=ProcessIdentity(1, 1), server=facts, system_log=SystemLog(True))
    bundle["earlier_deaths"] = []
    _, made = to_entry_and_report(bundle, diagnose(bundle))
    html.render(made, html.Links("", "", ""))
    html.render_list([], str)
    html.render_message("", "", "")
    shared_markdown(bundle, made, Identity.of_here())
    export(bundle, made, Identity.of_here(), Choices()).zipped()
