# %% setup
import sqlite3

import near_limit

# %%
# SQLite takes its memory from malloc by itself.
base = sqlite3.connect(":memory:")
base.execute("create table log (id integer, text blob)")
rows = 0
while near_limit.room(0.93) > 16 * near_limit.MIB:
    base.executemany(
        "insert into log values (?, zeroblob(4000))", ((rows + k,) for k in range(2_000))
    )
    rows += 2_000
found = base.execute("select count(*), sum(length(text)) from log").fetchone()
assert found == (rows, 4_000 * rows)
print("digest:", base.execute("select sum(id) from log where id < 1000").fetchone()[0])
