# %% setup
import keras
import numpy as np


class Scans(keras.utils.PyDataset):
    def __init__(self, **options):
        super().__init__(**options)
        self.opened = {}

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        self.opened[index] = np.random.default_rng(index).random((8, 64, 64), dtype="float32")
        return self.opened[index], np.ones((8, 1), "float32")


model = keras.Sequential([keras.Input((64, 64)), keras.layers.Flatten(), keras.layers.Dense(1)])
model.compile("sgd", "mse")
scans = Scans(workers=3, use_multiprocessing=False)

# %%
model.fit(scans, verbose=0)

# %% retry
scans.opened.clear()
model.fit(np.ones((8, 64, 64)), np.ones((8, 1)), verbose=0)
