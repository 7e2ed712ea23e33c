# needs: pyinstrument
# %% setup
import near_limit
import pyinstrument

# %%
profiler = pyinstrument.Profiler(interval=0.001)
profiler.start()
blocks = near_limit.fill(0.95)
near_limit.hold()
profiler.stop()
text = profiler.output_text()
assert "hold" in text
print("digest:", float(blocks[0].sum()))
