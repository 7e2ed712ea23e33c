"""Split a log, as users paste it, into the lines that the programs wrote.

Pasted text can contain terminal colours, progress bars with a record at their end, quote or comment marks before each
line, and blocks of output that an export indented. These are removed. Each line keeps its number in the pasted text. This module does not interpret the lines.

The time is linear in the length of any text.
"""

from __future__ import annotations

import bisect
import html
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .bars import cut_at_bar, may_be_cut
from .carriers import uncarried

LONGEST_LINE = 4000
TRACEBACK = "Traceback (most recent call last)"
# If a message is repeated ten thousand times, only the first occurrences count.
_HITS_OF_A_ROW = 40
# What web pages, office programs and keyboards make of blanks and quotes.
_CHARACTERS = str.maketrans(
    "\u00a0\u2007\u2009\u202f\u3000\u2018\u2019\u201c\u201d\uff1a",
    "     ''\"\":",
    "\u200b\u200c\u200d\u2060\ufeff",
)
# "Traceback (most recent call last):\\n  File ...\\nMemoryError": a text that was printed as a Python or JSON string
_ESCAPED_END = re.compile(r"\\n(?:\s|\\t|[A-Z\d'\"])")
# A line of a web page: <br>, <span style="...">
_TAGS = re.compile(r"</?(?:span|pre|code|div|font|strong|em|li|p|b|i|br)\b[^<>]{0,200}>")
_ANSI = re.compile(
    r"\x1b(?:\[[0-9;?]{0,20}[ -/]?[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])"
)
# "> # `": marks that web pages and mails put before a quoted line.
QUOTE_MARKS = re.compile(r"^\s{0,40}(?:(?:>{1,8}|#{1,8}|//|\||`{1,3}|\*(?!\*))\s{1,40}|[>`]{1,8})+")
_MARKS = frozenset('>#/|`*"{')
_WRAPPED = re.compile(r"[\x1b\r\x08\x0b\x0c\x85\u2028\u2029&]")
_LINE_ENDS = re.compile(r"[\r\x08\x0b\x0c\x85\u2028\u2029]+|\n")
# KeyboardInterruptTraceback (most recent call last): the head of a notebook's traceback that lost its blanks
_HEAD_WITHOUT_GAP = re.compile(r"(?:(?<=Error)|(?<=Interrupt))(?=Traceback \(most)")
# What launchers and collectors put before each line: "[rank0]: ", "[1,0]<stderr>:", "(fit pid=41, ip=10.0.0.2) ", "trainer-1  | ",
# "2026-05-05T10:00:00.123Z ", "[pod/lab-0/notebook] ", "May 05 10:00:00 lab jupyter[811]: "
_PREFIX = re.compile(
    r"^(?:\x1b\[[\d;]{0,8}m)?(?:\[rank\d{1,5}\]: ?|\[\d{1,4},\d{1,5}\](?:<std(?:err|out)>)?: ?|\((?:[\w.:]{1,60} )?pid=\d{1,10}[^)]{0,40}\)(?:\x1b\[0m)? "
    r"|\d{4}-\d\d-\d\dT[\d:.,]{8,20}(?:Z|[+-]\d\d:?\d\d)? (?:std(?:err|out) [FP] )?|\[pod/[^\]]{1,100}\] |[A-Za-z][\w.-]{0,62}-\d{1,4} {1,20}\| "
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,60} (?:jupyter|python|ipython|papermill)[\w.-]{0,30}\[\d{1,10}\]: )"
)
# Usual widths of terminals. Another width counts if at least two different lines have it and none is longer.
_WIDTHS = (79, 80, 100, 120, 132)
_NARROWEST = 60
_SHORTEST_REST = 10
# How a line begins that is no rest of a wrapped one.
FRESH = re.compile(
    r"\s{2}|\t|\d{4}-\d\d|\[|[IWEF]\d{4}|Traceback|Killed|Terminated|Aborted|Segmentation|Bus error|Illegal|File |Epoch|\d{1,9}/\d|[\w.]{1,80}(?:Error|Exception|"
    r"Interrupt|Exit)\b|[A-Z][a-z]{2} [ \d]\d \d\d:|[A-Z/][^\s()]{2,40}: |"
    r"(?:[\w./-]{0,60}(?:sh|python[\d.]{0,6}|jupyter[\w-]{0,20}|run|stepd|mpirun|exec|kernel|conda|docker))(?:\[\d{1,10}\])?: |zsh|bash|\*\*\*|---|Fatal|terminate|OMP|Kernel|.{0,60}\d%\|"
)
_BEFORE = frozenset("[(0123456789\x1b")
_MARGIN = ("    ", "\t")
# How an output begins, at the margin of a block.
_OUTPUT = re.compile(
    r"Traceback \(most recent|-{20}|Epoch \d|\d{4}-\d\d-\d\d \d\d:|[IWEF]\d{4} \d|(?:WARNING|ERROR|INFO|CRITICAL)\b"
    r"|\d{1,9}/\d{1,9} [\[━]|(?:[\w.]{1,80}\.)?[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit)\b(?::|\s|$)"
)
# A record that begins in the middle of a line:
# 19/84 [=>...] - loss: 0.22182021-10-11 20:45:58.179404: E tensorflow/...      ...I0000 00:00:1700000000.1 4711 a.cc:1] ...
_RECORD_STARTS = re.compile(
    r"(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,9}: [IWEF] )"
    r"|(?<![A-Za-z])(?=[IWEF]\d{4} \d\d:\d\d:\d{2,12}(?:\.\d{1,9})? {1,12}\d{1,10} \S{1,200}:\d{1,6}\])"
)
# 2026-11-21 02:14:05.123456: F external/local_xla/xla/parse_flags.cc:224] Unknown flag in XLA_FLAGS: --x
# F0000 00:00:1700000000.123456    4711 parse_flags.cc:224] Unknown flag in XLA_FLAGS: --x
# F tensorflow/core/platform/cpu_feature_guard.cc:37] ...
_RECORD = re.compile(
    r"(?:^|[\s:])(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?: )?(?P<severity>[IWEF])"
    r"(?:\d{4} \d\d:\d\d:\d{2,12}(?:\.\d{1,9})?\s{1,12}\d{1,10}|\d{4}(?: \.\.\.)?)?"
    r" (?P<file>[\w./+-]{1,200}\.(?:cc|h|cu|cpp|c|hpp|inc)):\d{1,6}\] ?(?P<text>.*)",
    re.DOTALL,
)


# F0000 00:00:1700000000.123456    4711 gpu_exec: the rest of the last line was not copied
_CUT_RECORD = re.compile(
    r"(?P<severity>[EF])\d{4} \d\d:\d\d:\d{2,12}(?:\.\d{1,9})?\s{1,12}\d{1,10}(?: [\w./+-]{0,200})?$"
)

# A library that does not know the reason lists what it could have been: "This could be caused by a segmentation fault or by
# excessive memory usage. The exit codes of the workers are {SIGKILL(-9)}". Only the end of this line is evidence.
_GUESS = re.compile(
    r"(?:(?i:(?:could|can|may|might) (?:also )?(?:be|have been) (?:caused by|due to|because of|the result of|killed|out of memory)"
    r"(?!.{0,40}shared memory)"
    r"|(?:is|was) (?:probably|likely|usually|often|typically|most likely|commonly|possibly) (?:caused by|due to|because of|the result of|killed)"
    r"|\b(?:perhaps|maybe|possibly|probably|likely) (?:(?:it|was|is|an?|the|because|of|due|to) ){0,4}"
    r"(?:killed|out of memory|oom\b|crash|segfault|segmentation fault|memory)"
    r"|\b(?:may|might|could) have (?:crashed|run out|hit|exceeded))).*?(?:\. (?=[A-Z])|$)"
    r"|(?i:(?:potential|possible|common|likely) (?:root )?(?:causes|reasons)\b).*"
    r"|^\s{0,20}\(\d\) (?:[Tt]he )?(?:process|worker|job|task|node|kernel|ray)\b.*"
    # A line of source code, a setting, an explanation, a question how: they name an end that has not happened.
    r"|^.{0,300}?\b(?:os\.kill(?:pg)?\(|signal\.(?:signal|raise_signal|pthread_kill)\(|signal\.SIG[A-Z]{2,8}\s?[,)\]]).*"
    r"|^\s{0,20}trap ['\"].*|--signal[= ]\S{1,20}|\bsends? SIG(?:TERM|KILL|INT)\b(?! to ).*"
    r"|(?i:\bexit codes?:?) ?-?\d{1,10} (?:means|indicates|stands|is (?:a|the|usually|described))\b.*|(?i:\bexit codes:).*|^.{0,200}\bis (?:described|documented|explained) (?:at|in|here|there)\b.*"
    r"|^(?:How (?:can|do|to|should)|What (?:does|is|are|should)|Should (?:I|we))\b.{0,300}\?$"
)


# Lines of Python. People paste their program with its log, and a program that handles signals or errors names them.
_CODE_BEGINS = ("from ", "import ", "if ", "elif ", "for ", "except", "raise ", "def ", "class ", "self.", "log", "return ", '"""', "assert ")  # fmt: skip
_CODE = re.compile(
    r"\s{0,80}(?:from [\w.]{1,100} import |import [\w., ]{1,200}$|(?:el)?if .{1,200}:$|for .{1,200} in .{1,200}:$|except\b.{0,200}:$"
    r"|raise [\w.]{1,100}(?:\(|$)|def \w{1,80}\(|class \w{1,80}.{0,100}:$|(?:self|log|logger|logging)\.\w.{0,200}\(|return \w.{0,200}\(|assert \w.{0,200}[=<>(]|\x22{3})"
)


class LogLine(NamedTuple):
    """One line.

    Attributes:
        number: Line number in the pasted text, from 1.
        text: The line without colours, quote marks and wrapping.
        severity: ``I``, ``W``, ``E`` or ``F`` of a record of TensorFlow or a program with the same format; else "".
        file: The source file that the record names, without its folders.
        message: The text of the record, or the whole line.
    """

    number: int
    text: str
    severity: str
    file: str
    message: str


def without_guesses(text: str) -> str:
    """The line without what its author only supposes, or only programmed."""
    if text.lstrip().startswith(_CODE_BEGINS) and _CODE.match(text):
        return ""
    return _GUESS.sub("", text) if _may_guess(text) else text


def all_without_guesses(texts: Sequence[str]) -> list[str]:
    """The lines without guesses. Most logs have none, which one look at the whole text shows."""
    whole = "\n".join(texts)
    if not _may_guess(whole) and not any(begin in whole for begin in _CODE_BEGINS):
        return list(texts)
    return [without_guesses(text) for text in texts]


def _may_guess(text: str) -> bool:
    """Much faster than the pattern: most lines have no such word."""
    return (
        " be " in text
        or " have " in text
        or "ly " in text
        or "aybe" in text
        or "erhaps" in text
        or "causes" in text
        or "reasons" in text
        or ") " in text
        or "os.kill" in text
        or "ignal" in text
        or "trap " in text
        or "sends " in text
        or "send " in text
        or "means" in text
        or "indicates" in text
        or "codes:" in text
        or "stands" in text
        or " is " in text
        or "?" in text
    )


def log_lines(text: str) -> list[LogLine]:
    """The lines of a pasted log."""
    if not text.isascii():
        text = text.translate(_CHARACTERS)
    if "tTraceback (most" in text or "rTraceback (most" in text:
        text = _HEAD_WITHOUT_GAP.sub("    ", text)
    lines = uncarried(text.split("\n"))
    if "\\n" in text or "</" in text or "<br" in text:
        lines = [_unwoven(line) for line in lines]
    lines = [_bare(line) for line in lines]
    return list(_read(enumerate(_unindented(_rejoined(lines)), 1)))


def native_lines(lines: Iterable[str]) -> list[LogLine]:
    """Like :func:`log_lines`, for lines that were recorded one by one."""
    return list(_read(enumerate(lines, 1)))


def _bare(line: str) -> str:
    """The line without the JSON of a notebook file, and without what a launcher puts before each line."""
    if line.endswith(('"', '",', '"\r', '",\r')):
        line = _of_json(line)
    if line[:1] in _BEFORE or "| " in line[:70] or "]: " in line[:100]:
        return _PREFIX.sub("", line, count=1)
    return line


def _unwoven(line: str) -> str:
    """The line without tags of a web page, and as the lines that it was before it became one string."""
    if "\\n" in line and _ESCAPED_END.search(line) is not None:
        line = (
            line.replace("\\r\\n", "\r")
            .replace("\\n", "\r")
            .replace("\\t", "\t")
            .replace('\\"', '"')
        )
    return _TAGS.sub(lambda tag: "\r" if tag[0].startswith("<br") else "", line)


def _of_json(line: str) -> str:
    """The text of a line that is a JSON string; other lines as they are."""
    text = line.strip().removesuffix(",")
    if len(text) < 3 or text[0] != '"' or text[-1] != '"':
        return line
    try:
        found = json.loads(text)
    except ValueError:
        return line
    return found.rstrip("\n").replace("\n", "\r") if isinstance(found, str) else line


def is_cut_in_traceback(lines: Sequence[LogLine]) -> bool:
    """True if the text ends inside a traceback, before its exception."""
    frames = itertools.takewhile(lambda line: line.text[:1].isspace(), reversed(lines))
    place = len(lines) - 1 - sum(1 for _ in frames)
    return place >= 0 and lines[place].message.startswith(TRACEBACK)


def _rejoined(lines: list[str]) -> list[str]:
    """The lines, joined again where a terminal had cut them at its width; the places of their rests are empty."""
    width = max(map(len, lines), default=0)
    if width < _NARROWEST:
        return lines
    full = [place for place, line in enumerate(lines[:-1]) if len(line) == width]
    alone = len({lines[place] for place in full}) < 2
    if width not in _WIDTHS and alone:
        return lines
    found = list(lines)
    for place in reversed(full):
        rest = found[place + 1]
        in_word = rest[:1].islower() and (found[place][-1].isalpha() or found[place][-1] == " ")
        if alone and len(rest) < _SHORTEST_REST and not in_word:
            continue
        if rest and FRESH.match(rest) is None and len(rest) < LONGEST_LINE:
            found[place], found[place + 1] = f"{found[place]}{rest}", ""
    return found


def _unindented(lines: list[str]) -> list[str]:
    """The lines, with the indentation of exported outputs removed.

    An exported notebook indents each output by four spaces. The source lines of a traceback are indented too, so a block
    counts only if an output begins at its own margin: an exception, a rule of dashes, a record, an epoch.
    """
    if not any(line.startswith(_MARGIN) for line in lines):
        return lines
    found = list(lines)
    for is_indented, group in itertools.groupby(
        range(len(lines)),
        lambda place: not lines[place].strip() or lines[place].startswith(_MARGIN),
    ):
        block = list(group)
        texts = [lines[place] for place in block if lines[place].strip()]
        before = lines[block[0] - 1].lstrip() if block[0] else ""
        if not is_indented or not texts or before.startswith('File "'):
            continue
        margin = min(len(text) - len(text.lstrip()) for text in texts)
        if any(_OUTPUT.match(text, margin) for text in texts):
            for place in block:
                found[place] = lines[place][margin:]
    return found


def _read(numbered: Iterable[tuple[int, str]]) -> Iterator[LogLine]:
    for number, raw in numbered:
        text = raw.strip()
        if not text:
            continue
        is_plain = _WRAPPED.search(text) is None and text[0] not in _MARKS
        if is_plain and "] " not in text and not may_be_cut(text):  # nearly every line
            yield _line(number, raw[:LONGEST_LINE].rstrip())
            continue
        if is_plain:
            pieces: Iterable[str] = (raw,)
        else:
            pieces = (QUOTE_MARKS.sub("", piece, count=1) for piece in _unwrapped(raw))
        for piece in pieces:
            for record in _records(piece):
                for part in cut_at_bar(record):
                    if part and not part.isspace():
                        yield _line(number, part[:LONGEST_LINE].rstrip())


def _line(number: int, text: str) -> LogLine:
    message = text.strip()
    if message[:1] in "EF" and (cut := _CUT_RECORD.match(message[:300])) is not None:
        return LogLine(number, message, cut["severity"], "", message)
    if "] " not in text[:400] or (found := _RECORD.search(text[:400])) is None:
        return LogLine(number, text, "", "", message)
    said = text[found.start("text") :].strip()
    return LogLine(number, message, found["severity"], found["file"].rsplit("/", 1)[-1], said)


def _unwrapped(raw: str) -> Iterator[str]:
    """One line without terminal codes and HTML entities; several lines if a progress bar overwrote itself."""
    text = _ANSI.sub("", raw)
    if "&" in text and ";" in text:
        text = html.unescape(text)
    yield from _LINE_ENDS.split(text)


def _records(text: str) -> Iterator[str]:
    """Split a line that contains several records."""
    if "] " not in text:
        yield text
        return
    starts = [0, *(found.start() for found in _RECORD_STARTS.finditer(text)), len(text)]
    yield from (text[a:b] for a, b in itertools.pairwise(starts) if b > a)


class Haystack:
    """Some lines, joined once so that repeated searches are fast.

    Args:
        lines: Without line ends.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.text = "\n".join(lines)
        # Offset of each line, and the total length.
        self.starts = list(itertools.accumulate((len(line) + 1 for line in lines), initial=0))

    def place(self, position: int) -> int:
        """Number of the line at this position of the text."""
        return bisect.bisect_right(self.starts, position) - 1

    def places(
        self, needles: Iterable[str], begin: int = 0, end: int | None = None
    ) -> Iterator[int]:
        """Numbers of the first lines of ``[begin:end]`` that contain one of the needles, without duplicates."""
        starts, seen = self.starts, set()
        last = len(self.text) if end is None else max(0, starts[end] - 1)
        for needle in needles:
            position, hits = self.text.find(needle, starts[begin], last), 0
            while position >= 0 and hits < _HITS_OF_A_ROW:
                place = self.place(position)
                if place not in seen:
                    seen.add(place)
                    yield place
                hits += 1
                position = self.text.find(needle, starts[place + 1], last)
