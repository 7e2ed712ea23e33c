# %% setup
import keras
import numpy as np

rng = np.random.default_rng(24)
texts = [rng.integers(1, 20_000, rng.integers(5, 60)) for _ in range(60_000)]
texts.append(np.ones(20_000, dtype="int64"))  # one text is much longer than the others

# %%
padded = keras.utils.pad_sequences(texts)

# %% retry
padded = keras.utils.pad_sequences(texts, maxlen=64)
assert padded.shape == (60_001, 64)
