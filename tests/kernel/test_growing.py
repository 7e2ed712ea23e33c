"""What holds the memory that a cell has added: found by object, named as the user writes it, with its size."""

from __future__ import annotations

import functools
import gc
import sys
import traceback
import weakref
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.kept_data import Holder
from jupyter_tfguard.kernel.cells import hidden, reachable
from jupyter_tfguard.kernel.cells.growing import CellHolders
from jupyter_tfguard.units import MIB

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def _the_tests_are_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Their frames and classes are not the user's."""
    monkeypatch.setattr(
        reachable, "_LIBRARIES", reachable._LIBRARIES | {__name__.partition(".")[0]}
    )
    reachable.is_users.cache_clear()
    yield
    reachable.is_users.cache_clear()


class Cells:
    """A notebook whose cells are run here; its classes and functions are of ``__main__``, as in a kernel."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__", "np": np}
        self.holders = CellHolders(self.names)

    def run(self, code: str) -> None:
        self.holders.begin()
        exec(code, self.names)

    def found(
        self, added: int | None = None, objects: tuple[tuple[str, Any], ...] = ()
    ) -> list[Holder]:
        return self.holders.found(objects, added)


def block(count: int = 1) -> str:
    return f"np.ones({count} << 20, 'u1')"


HOLDERS = {
    "a list": ("kept = []", "kept += [BLOCK for _ in range(40)]", "kept", 40, 40),
    "a list that existed": (
        "kept = [BLOCK for _ in range(10)]", "kept += [BLOCK for _ in range(40)]", "kept", 50, 40
    ),
    "a dictionary of lists": (
        "data = {'x': [], 'y': []}",
        "for _ in range(40): data['x'].append(BLOCK); data['y'].append(0.5)",
        "data['x']", 40, 40,
    ),
    "an attribute": (
        "class Keep:\n    def __init__(self): self.kept = {}\nkeep = Keep()",
        "for n in range(40): keep.kept[n] = BLOCK",
        "keep.kept", 40, 40,
    ),
    "an attribute of an attribute": (
        "class Keep:\n    def __init__(self): self._rows = []\n"
        "class Trainer:\n    def __init__(self): self.log = Keep()\ntrainer = Trainer()",
        "for n in range(40): trainer.log._rows.append(BLOCK)",
        "trainer.log._rows", 40, 40,
    ),
    "an attribute of a class": (
        "class Keep:\n    kept = []\n    def add(self): self.kept.append(BLOCK)",
        "for n in range(40): Keep().add()",
        "Keep.kept", 40, 40,
    ),
    "a slot": (
        "class Keep:\n    __slots__ = ('kept',)\nkeep = Keep(); keep.kept = []",
        "keep.kept += [BLOCK for _ in range(40)]",
        "keep.kept", 40, 40,
    ),
    "a closure": (
        "def make():\n    kept = []\n    def step(): kept.append(BLOCK)\n    return step\nstep = make()",
        "for n in range(40): step()",
        "kept in step()", 40, 40,
    ),
    "a default": (
        "def add(block, kept=[]): kept.append(block)",
        "for n in range(40): add(BLOCK)",
        "kept of add()", 40, 40,
    ),
    "a cached function": (
        "import functools\n@functools.cache\ndef load(n): return BLOCK",
        "for n in range(40): load(n)",
        "load", 40, 40,
    ),
    "a cached function with a limit": (
        "import functools\n@functools.lru_cache(maxsize=30)\ndef load(n): return BLOCK",
        "for n in range(40): load(n)",
        "load", 30, 30,
    ),
    "a deque": (
        "from collections import deque\nqueue = deque()",
        "queue.extend(BLOCK for _ in range(40))",
        "queue", 40, 40,
    ),
    "a generator": (
        "def rows():\n    kept = []\n    while True:\n        kept.append(BLOCK)\n        yield kept[-1]\nit = rows()",
        "for n in range(40): next(it)",
        "kept in rows()", 40, 40,
    ),
    "rows of batches": (
        "kept = []", "kept += [np.ones((64, 1 << 14), 'u1')[3] for _ in range(40)]", "kept", 40, 40
    ),
    "objects with arrays": (
        "class Row:\n    def __init__(self): self.image, self.text = BLOCK, 'a'\nrows = []",
        "rows += [Row() for _ in range(40)]",
        "rows", 40, 40,
    ),
    "a queue": (
        "import queue\nwaiting = queue.Queue()",
        "for n in range(40): waiting.put(BLOCK)",
        "waiting.queue", 40, 40,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOLDERS)
def test_what_grew_is_named_as_the_user_writes_it_with_its_size(kind: str) -> None:
    before, code, name, count, added_mib = HOLDERS[kind]
    cells = Cells()
    cells.run(before.replace("BLOCK", block()))
    cells.run(code.replace("BLOCK", block()))
    found = cells.found()
    assert found[0].name == name
    assert found[0].count == count
    assert found[0].added_bytes == pytest.approx(added_mib * MIB, rel=0.05)
    assert [one for one in found[1:] if (one.added_bytes or 0) > MIB] == []


def test_texts_and_buffers_that_grew_are_named() -> None:
    cells = Cells()
    cells.run("import io\ntext, data, buffer = '', bytearray(), io.BytesIO()")
    cells.run(
        "text += 'a' * (30 << 20); data += b'b' * (20 << 20); buffer.write(b'c' * (10 << 20))"
    )
    assert [one.name for one in cells.found()] == ["text", "data", "buffer"]
    assert cells.found()[0].text == "text is 30 MiB, 30 MiB more than before this cell."


def test_numbers_and_texts_in_a_container_count() -> None:
    cells = Cells()
    cells.run("losses, counts = [], {}")
    cells.run(
        "losses += [n / 7 for n in range(1_000_000)]\n"
        "for n in range(50_000): counts['%0200d' % n] = 1"
    )
    sizes = {one.name: one.added_bytes or 0 for one in cells.found()}
    assert sizes["losses"] == pytest.approx(32e6, rel=0.15)
    assert sizes["counts"] == pytest.approx(50_000 * (249 + 104), rel=0.3)


def test_frames_of_pandas_in_a_dictionary_count() -> None:
    pytest.importorskip("pandas")
    cells = Cells()
    cells.run("import pandas as pd\nframes = {}")
    cells.run(
        "for n in range(20): frames[n] = pd.DataFrame({'a': np.ones(1 << 16), 'b': np.ones(1 << 16)})"
    )
    (found,) = cells.found()
    assert found.name == "frames"
    assert found.added_bytes == pytest.approx(20 * MIB, rel=0.05)


HEALTHY = {
    "a large array": (f"data = {block(100)}", "mean = data.mean()"),
    "a large list": (f"data = [{block()} for _ in range(100)]", "mean = data[0].mean()"),
    "a bounded deque that is full": (
        f"from collections import deque\nrecent = deque(({block()} for _ in range(50)), maxlen=50)",
        f"for n in range(50): recent.append({block()})",
    ),
    "a cache that is emptied": (
        f"cache = {{n: {block()} for n in range(50)}}",
        f"for n in range(50, 90): cache[n] = {block()}\nwhile len(cache) > 40: cache.popitem()",
    ),
    "views of an array that has a name": (
        f"data = {block(100)}",
        "rows = [data[n:] for n in range(1000)]",
    ),
    "the same arrays in another list": (
        f"a, b = {block(50)}, {block(50)}",
        "both = [a, b] * 10",
    ),
    "a list with the same array again and again": (
        f"one = [{block()}]",
        "many = one * 100_000",
    ),
}


@pytest.mark.parametrize("kind", HEALTHY)
def test_what_did_not_grow_is_not_named(kind: str) -> None:
    before, code = HEALTHY[kind]
    cells = Cells()
    cells.run(before)
    cells.run(code)
    assert [one for one in cells.found() if (one.added_bytes or 0) > 2 * MIB] == []


def test_a_bounded_deque_is_named_with_its_limit() -> None:
    cells = Cells()
    cells.run("from collections import deque\nrecent = deque(maxlen=30)")
    cells.run(f"for n in range(50): recent.append({block()})")
    (found,) = cells.found()
    assert found.text == "recent has 30 entries of the 30 that its maxlen allows, about 30 MiB."
    assert found.how == "Use a smaller maxlen."


def test_results_of_earlier_cells_are_named() -> None:
    cells = Cells()
    cells.run("mine = np.ones(1 << 17)")
    results = {n: np.ones(MIB, "u1") for n in range(12)} | {19: 0.5, 20: cells.names["mine"]}
    cells.names |= {"Out": results, "_oh": results, "_": results[11], "_11": results[11]}
    (found,) = cells.found()
    assert found.text == "The results of 12 cells are kept in Out, about 12 MiB."
    assert "%reset -f out" in found.how
    assert found.is_old


@pytest.fixture
def an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> None:
        data = np.ones(9 * MIB, "u1")
        raise ValueError(len(data))

    try:
        load()
    except ValueError as error:
        monkeypatch.setattr(sys, "last_value", error, raising=False)
        monkeypatch.delattr(sys, "last_exc", raising=False)


@pytest.mark.usefixtures("an_error")
def test_the_last_traceback_is_named_with_what_it_keeps() -> None:
    (found,) = Cells().found()
    assert found.text == (
        "The traceback of the last error keeps about 9 MiB, most of it data in load()."
    )


def test_a_list_of_a_function_that_runs_is_named() -> None:
    cells = Cells()
    seen: list[list[Holder]] = []
    cells.names["look"] = lambda: seen.append(cells.found())
    cells.run(
        f"def load():\n    rows = [{block()} for _ in range(30)]\n    look()\n    return rows\nload()"
    )
    assert seen[0][0].name == "rows in load()"


def test_variables_that_were_read_do_not_outlive_their_function() -> None:
    cells = Cells()
    seen: list[Any] = []
    cells.names["look"] = lambda data: seen.append(weakref.ref(data)) or cells.found()
    with pytest.raises(ZeroDivisionError) as raised:
        cells.run("def load():\n    data = np.ones(9)\n    look(data)\n    1 / 0\nload()")
    frames = [frame for frame, _ in traceback.walk_tb(raised.value.__traceback__)]
    cells.found()  # reads the error as well
    frames[-1].clear()
    assert seen[0]() is None


def test_an_object_that_no_name_reaches_is_found_when_nothing_else_explains_it() -> None:
    cells = Cells()
    cells.run("class Keep:\n    def __init__(self): self.kept = []")
    hidden = SimpleNamespace(inner=functools.partial(cells.names["Keep"])())
    cells.holders.begin()
    hidden.inner.kept += [np.ones(MIB, "u1") for _ in range(30)]
    assert cells.found() == []
    gc.collect()  # what other tests have left
    assert cells.holders.found(added_bytes=30 * MIB, hurry=lambda: True) == []
    found, *others = cells.found(added=30 * MIB)
    assert [one for one in others if (one.added_bytes or 0) > MIB] == []
    assert found.text == "Keep.kept has 30 entries, about 30 MiB."


def test_millions_of_objects_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    # The lists of them took the last memory of a kernel with a tree of small objects.
    listed: list[int] = []
    monkeypatch.setattr(
        hidden.gc, "get_objects", lambda generation: listed.append(generation) or []
    )
    assert list(hidden.lost_places(reachable.Walk(1))) == []
    assert listed == [0, 1, 2]
    monkeypatch.setattr(hidden, "_OBJECTS", sys.getallocatedblocks() // 2)
    assert list(hidden.lost_places(reachable.Walk(1))) == []
    assert listed == [0, 1, 2]


def test_objects_of_the_running_fit_are_looked_into() -> None:
    cells = Cells()
    cells.run(
        "class Train:\n    def __init__(self): self.cache = {}\nclass Collect:\n    seen = []\n"
    )
    train, collect = cells.names["Train"](), cells.names.pop("Collect")()
    cells.holders.begin()
    train.cache |= {n: np.ones(MIB, "u1") for n in range(30)}
    collect.seen.extend(np.ones(MIB, "u1") for n in range(20))
    found = cells.found(objects=(("Train", train), ("Collect", collect)))
    assert [one.name for one in found] == ["Train.cache", "Collect.seen"]


def test_a_proxy_without_attributes_is_passed() -> None:
    cells = Cells()
    cells.names["wrapt"] = pytest.importorskip("wrapt")  # of TensorFlow
    cells.run("class Proxy(wrapt.ObjectProxy): pass")
    cells.run(f"found, kept = Proxy({{}}), [{block(30)}]")
    assert [one.name for one in cells.found()] == ["kept"]


def test_no_code_of_the_users_runs() -> None:
    class Loud(list[int]):
        def __len__(self) -> int:
            raise AssertionError

        __getitem__ = __iter__ = __sizeof__ = __reversed__ = __len__  # type: ignore[assignment]

    class Table(dict[int, int]):
        def keys(self) -> Any:
            raise AssertionError

        values = items = __len__ = __iter__ = __sizeof__ = __reversed__ = keys  # type: ignore[assignment]

    class Proxy:
        @property
        def __class__(self) -> Any:
            raise AssertionError

        @__class__.setter
        def __class__(self, value: Any) -> None:
            raise AssertionError

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    for kind in (Loud, Table, Proxy):
        kind.__module__ = "__main__"
    cells = Cells()
    loud, table = Loud(range(99)), Table({n: n for n in range(99)})
    cells.names |= {"loud": loud, "table": table, "proxy": Proxy(), "kinds": [Loud, Table, Proxy]}
    cells.holders.begin()
    list.extend(loud, range(1000))
    dict.update(table, {n: 2 * n for n in range(1000)})
    cells.names["queue"] = deque([Proxy(), Loud(), Table()])
    assert {one.name for one in cells.found(added=1 << 30)} >= {"loud", "table"}


def test_in_a_large_notebook_only_what_is_known_to_have_grown_is_named() -> None:
    cells = Cells()
    cells.run("class Keep:\n    def __init__(self): self.kept = []")
    cells.run(f"old = Keep(); old.kept += [{block()} for _ in range(30)]")
    cells.run(
        "many = [Keep() for _ in range(30)]\nfor n in range(400): globals()[f'o{n}'] = [[Keep() for _ in range(9)]]"
    )
    cells.run(f"new = []; new += [{block()} for _ in range(20)]")
    assert not cells.holders._is_complete
    assert [one.name for one in cells.found() if (one.added_bytes or 0) > MIB] == ["new"]


def test_in_a_memory_that_was_full_what_did_not_grow_is_named_too() -> None:
    cells = Cells()
    cells.run("class Keep:\n    def __init__(self): self.kept = {'x': []}\nkeep = Keep()")
    cells.run(
        f"keep.kept['x'] += [{block()} for _ in range(30)]\nold = [{block()} for _ in range(20)]"
    )
    cells.run(f"new = [{block()} for _ in range(2)]")
    found = [
        (one.text, one.is_old)
        for one in cells.holders.found(added_bytes=2 * MIB, was_full=True)
        if (one.added_bytes or 0) > MIB
    ]
    assert found == [
        ("keep.kept has 1 entry, about 30 MiB.", True),
        ("old has 20 entries, about 20 MiB.", True),
        ("new has 2 entries, 2 more than before this cell, about 2 MiB.", False),
    ]
