# needs: duckdb
# %% setup
import duckdb
import near_limit

base = duckdb.connect()
base.execute("set memory_limit = '300MB'; set threads = 2")

# %%
kept = near_limit.fill(0.92, spare=200 * near_limit.MIB)
base.execute("create table t as select i, i % 1000 as k, i * 0.5 as v from range(5000000) r(i)")
found = base.execute("select k, sum(v) from t group by k order by k").fetchall()
kept += near_limit.fill(0.94)
assert len(found) == 1_000
print("digest:", sum(float(value) for _, value in found))
