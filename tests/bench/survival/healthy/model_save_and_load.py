# %% setup
import keras
import near_limit
import numpy as np

keras.utils.set_random_seed(5)
model = keras.Sequential([keras.Input((1_000,)), keras.layers.Dense(10_000)])
x = np.ones((2, 1_000), dtype="float32")
before = model.predict(x, verbose=0)

# %%
kept = near_limit.fill(0.94, spare=170 * near_limit.MIB)
model.save("model.keras")
again = keras.models.load_model("model.keras")
assert np.allclose(again.predict(x, verbose=0), before)
print("digest:", again.count_params(), len(kept) > 3)
