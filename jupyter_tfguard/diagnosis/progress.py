"""Which lines of a log show that the program continued, that it finished, or that something went wrong.

A line is judged by its words alone. What a whole log shows is in story.py.
"""

from __future__ import annotations

import re

from .log_lines import LogLine

# Epoch 3/10      938/938 [=====>...] - 413s 436ms/step      64%|####   | 3.1it/s      val_loss: 0.39      step 340: ...
PROGRESS = re.compile(
    r"(?:\bepoch:? ?\[?\d{1,7}\b"
    r"|\b\d{1,9}/(?:\d{1,9}|unknown) ?\[[=>.#-]"
    r"|\b\d{1,3}%\|"
    r"|\b\d+(?:\.\d+)?(?:s|ms|us)/(?:step|sample|epoch|it)\b|\b\d+(?:\.\d+)?(?:it/s|s/it)\b"
    r"|\b(?:loss|accuracy|acc|mae|mse|auc|f1|precision|recall|reward|return|score)\b'?\s?[:=]\s?\[?-?\d"
    r"|\b(?:global )?step:? ?\d{1,12}\b"
    r"|\b(?:finished with exit code|exited with (?:code|status)|exit code:|COMPLETED \(exit code)\s{1,8}0(?![\dx])\b|\bCOMPLETED\s{1,20}0:0\b)",
    re.IGNORECASE,
)
# A container's state says when it ended: `Finished:   Mon, 02 Feb ...`, "FinishedAt": "2026-02-03T...". That is no progress.
DONE = re.compile(
    r"\b(?:sav(?:ed|ing) (?:the |trained |best |final )*(?:model|checkpoint|weights|predictions|results?|file|output)"
    r"|(?:models?|checkpoint|weights|predictions|results?|files?|output|report|table) (?:(?:is|are|was|were) )?(?:saved|written|stored)\b"
    r"|training (?:complete|completed|finished|done)|\b(?:early stopping|stopping (?:the )?training)\b|completed successfully|successfully completed|done[.!]?$"
    r"|finished(?!(?:At)?[\"']?:\s{1,20}[\"']?(?:[A-Z][a-z]{2}, \d|\d{4}-\d\d-\d\d))"
    r"|elapsed|train_runtime': \d|tests? passed|\d{1,6} passed\b|predict(?:ion|ed)s?\b\s?[:=])",
    re.IGNORECASE,
)
# The rest of a warning that a library prints over several lines: advice in whole sentences, a list of folders. It is no output
# of the program.   If you are a user of the module, the easiest solution ...      ./cuda_sdk_lib      downgrade to 'numpy<2' or ... .
_REST_OF_A_WARNING = re.compile(
    r"^\s*(?:(?:If you|The current \w{1,20} install|You (?:can|may|might|should|could)|Please|Consider|To (?:disable|enable|avoid|fix|turn|silence|support)|We (?:expect|recommend)|Some modules?\b"
    r"|For (?:more|debugging|most)|This (?:may|can|might|could|will|message|warning)|Note:?|See (?:also )?(?:https?:|the|more))\b.{10}"
    r"|(?:Limit|InUse|MaxInUse|NumAllocs|MaxAllocSize|Reserved|PeakReserved|LargestFreeBlock): {1,30}\d+$|[a-z][^=:|]{0,200} [^=:|]{10,200}\.$|.{0,80}\bfollowing\b.{0,60}:$|(?:\.{0,2}/|[A-Z]:\\)\S*$)"
)
# What people write around a log.
_OF_A_PERSON = re.compile(
    r"\b(?:thanks|thank you|any ideas?|please|help|hi|hello|hallo|regards|cheers|anyone|somebody|i|my)\b|```",
    re.IGNORECASE,
)
# The last step of an epoch or a fit with its numbers; a loading bar has none.   938/938 [====] - 413s - loss: 0.2    100%|###| ... loss=0.2
_LAST_STEP = re.compile(r"(?<![\d/])(\d{1,9})/\1(?![\d/])|\b100%\||\bval_\w{1,40}\s?[:=]")
# 412/750 [=====>....]      12%|#2        |
_BAR_BEFORE_ITS_END = re.compile(
    r"(?<![\d/])(\d{1,9})/(?!\1\b)\d{1,9} ?[\[━]|^[^%|]{0,160}\b\d{1,2}(?:\.\d{1,3})?%\|"
)
# Loading checkpoint shards: 100%|####| 4/4 [00:15<00:00, 3.85s/it]: each process draws it before its first step
_PREPARES = re.compile(
    r"(?i)^\s{0,9}(?:(?:Map|Filter)(?: \([^)]{1,60}\))?:|Sanity Check|Generating \w{1,40} split)[^%|]{0,120}\d%"
    r"|^[^%|]{0,120}\b(?:(?:down)?load|fetch|read|import|unpack|extract|tokeniz|preprocess|prepar|install|cach|index|initiali[sz])ing\b[^%|]{0,120}\d%"
)
_PERCENT_BAR = re.compile(r"\d%(?:\||.{0,80}(?:it/s|s/it))")
_NUMBERS = re.compile(r"(?i)/step\b|\w{0,40}(?:loss|acc|accuracy|mae|mse|auc)\b\s?[:=]")
_EXIT_0 = re.compile(r"(?i)\b(?:code|status|code:)\s{1,8}0(?![\dx])\b|\bCOMPLETED\b")
# Saved in the middle of a run
_ON_THE_WAY = re.compile(
    r"(?i)\bsaving\b|\bsaved (?:the |a )?checkpoints?\b|\bcheckpoints? (?:is |was |were )?(?:saved|written)\b|\bimproved\b|\binit"
)
# {'loss': 0.31, 'global_step': 900} of an estimator, {'train_runtime': 81.2, ...} of a trainer: the result of a whole run
_RESULTS = re.compile(r"\{(?=[^{}]{0,400}'(?:global_step|train_runtime)': \d)[^{}]{0,400}\}")
# Epoch 10/10
_LAST_EPOCH = re.compile(r"(?i)\bepoch:? ?\[?(\d{1,7})/\1(?!\d)")
_EPOCH = re.compile(r"(?i)\bepoch:? ?\[?(\d{1,7})\b")
# Accuracy: 0.92    f1 = 0.81: a number of the whole run, and of no step
_RESULT = re.compile(r"(?i)\b(?:accuracy|auc|f1|precision|recall|score|mae|mse)\b\s?[:=]\s?\d")
_OF_A_STEP = re.compile(r"(?i)\b(?:epochs?|steps?|iter\w{0,8}|batch|loss|it/s|s/it)\b|\d/\d|\d%")
# Lines of Jupyter Server and of the controller of a batch system: they go on when the program has ended.
_OF_A_SERVER = re.compile(
    r"^\[[IWEDC] [\d:. -]{5,30} \w{0,30}(?:App|Hub|Restarter)\b|\b_job_complete: |\bslurmctld\b|^\s{0,20}\d{1,10}(?:_\d{1,6})?\.ext"
)
# A failure without a message of its own.    [ERROR] - Error executing job      Job failed      CRITICAL: ...      fit: error while loading
_TROUBLE = re.compile(
    r"^\S{0,80}(?:Error|Exception)\b(?!\s{0,3}=)|\[(?:ERROR|CRITICAL|FATAL)\]|\b(?:ERROR|CRITICAL|FATAL)\b(?: -|:|/)"
    r"|\bTraceback \(most recent|(?i:\berror (?:executing|running|while|occurred|during|in)\b|\b(?:compilation|execution|job|run|training|task|step|node|worker|process|command|program|script|build)s? "
    r"(?:has |have |was )?(?:failed|failure|crashed|aborted|died)\b)"
)
# "Canceled future for execute_request message before replies were done"
_NOT_DONE = re.compile(
    r"\b(?:before|until|unless|not|never|nothing|cancell?ed|disposing|without|instead of)\b",
    re.IGNORECASE,
)
# Lines of a traceback, a shell prompt, remarks about a failure: none of them shows that the program continued.
_NOT_ORDINARY = re.compile(
    r"(?:Traceback|^\s|^\S{0,80}(?:Error|Exception|Warning|Interrupt|Exit)\b"
    r"|\b(?:errors?|failed|failure|fatal|abort|aborted|killed|died|dead|crash|crashed|restart|restarting|kernel|core dumped|"
    r"signal|exit code|exited|cannot|could not|unable|segmentation|terminated|warning|exception)\b"
    r"|^[@#*^~=_+|-]|[$%>#] )",
    re.IGNORECASE,
)


# 5/10 [====>....] - loss: 0.2Segmentation fault (core dumped): a progress bar has no line end, so the message follows it.
_END_TEXT = re.compile(
    r"Fatal Python error: |Segmentation fault|Bus error|Illegal instruction|Aborted\b|Killed\b|terminate called |OMP: Error #"
    r"|Killed[a-z]|Terminated[a-z]|Traceback \(most recent call last\)|[Kk]ernel\b.{0,60}\b(?:died|dead|crashed|[Rr]estarting)|[Dd]ead ?[Kk]ernel|double free or corruption|(?:free|malloc|realloc|munmap_chunk)\(\): |slurmstepd: error"
)
# "kernel crashed in epoch 3": a step or an epoch in a sentence about the end. A bar or a list of metrics has no such word.
_END_WORD = re.compile(
    r"\b(?:crash(?:ed|es|ing)?|died|dies|dead|killed|aborted|terminated|seg-?faults?|segfaulted|hangs|hung|froze|frozen|stopped responding)\b",
    re.IGNORECASE,
)


def shows_progress(line: LogLine) -> bool:
    """True for a line with a step, an epoch, a metric or a saved result, unless a message about the end follows in it."""
    text = line.message[:300]
    if line.severity or text.startswith(("File ", "Traceback")):
        return False
    progress = PROGRESS.search(text)
    done = None if progress else DONE.search(text)
    if (
        not (progress or done) or _END_TEXT.search(line.text) or _OF_A_SERVER.search(text)
    ):  # in the order of their cost
        return False
    if done is None:
        return _END_WORD.search(text) is None
    return _NOT_ORDINARY.search(text) is None and _NOT_DONE.search(text, 0, done.start()) is None


def is_ordinary(line: LogLine) -> bool:
    """True for any normal output of the program: weaker than :func:`shows_progress`, but enough to refute a warning."""
    text = line.text[:300]
    if line.severity or len(line.message) <= 3 or line.message.endswith("?"):
        return False
    if _REST_OF_A_WARNING.match(text) is not None:
        return False
    return _NOT_ORDINARY.search(text) is None and _OF_A_PERSON.search(text) is None


def shows_end(line: LogLine) -> bool:
    """True for a line with progress that is also an orderly end: a saved result, exit code 0, the last step of an epoch."""
    text = line.message[:1000]
    if _EXIT_0.search(text) is not None:
        return True
    if _RESULTS.search(text) is not None:
        return True
    if DONE.search(text) is not None and _ON_THE_WAY.search(text) is None:
        return True
    return _LAST_STEP.search(text) is not None and _NUMBERS.search(text) is not None


def epoch_number(line: LogLine) -> str | None:
    """The number of the epoch that the line names; None without one."""
    found = (
        _EPOCH.search(line.message[:300]) if "poch" in line.text or "POCH" in line.text else None
    )
    return None if found is None else found[1]


def is_result(line: LogLine) -> bool:
    """True for a measure of the whole run, which is printed when the training has ended."""
    text = line.message[:300]
    return _RESULT.search(text) is not None and _OF_A_STEP.search(text) is None


def is_last_epoch(line: LogLine) -> bool:
    """True for the line that announces the last epoch of a fit."""
    return "poch" in line.text and _LAST_EPOCH.search(line.message[:300]) is not None


def is_unfinished_bar(line: LogLine) -> bool:
    """True for a progress bar before its end."""
    return _BAR_BEFORE_ITS_END.search(line.message[:300]) is not None


def is_preparation(line: LogLine) -> bool:
    """True for a bar of what a program does before its first step."""
    return "%" in line.text and _PREPARES.search(line.message[:300]) is not None


def is_bare_bar(line: LogLine) -> bool:
    """True for a bar without an epoch and without numbers of the training: any process may draw it."""
    text = line.message[:300]
    return _PERCENT_BAR.search(text) is not None and not (
        "poch" in text or _NUMBERS.search(text) is not None
    )


def shows_trouble(line: LogLine) -> bool:
    """True for a line that reports a failure, whatever it is."""
    if line.severity:
        return line.severity in ("E", "F")
    return _TROUBLE.search(line.message[:300]) is not None
