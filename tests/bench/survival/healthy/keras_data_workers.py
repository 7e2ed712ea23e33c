# %% setup
import keras
import near_limit
import numpy as np

keras.utils.set_random_seed(6)


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        x = np.full((128, 64, 64), float(index % 4), dtype="float32")
        return x, np.zeros((128, 1), dtype="float32")


model = keras.Sequential(
    [keras.Input((64, 64)), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)]
)
model.compile("sgd", "mse")
data = Batches(workers=2, use_multiprocessing=False, max_queue_size=6)
model.fit(data, verbose=0)

# %%
kept = near_limit.fill(0.94, spare=50 * near_limit.MIB)
history = model.fit(data, epochs=2, verbose=0)
assert len(history.history["loss"]) == 2
print("digest:", len(history.history["loss"]), len(kept) > 3)
