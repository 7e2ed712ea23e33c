# needs: matplotlib
# %% setup
import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

# %%
for number in range(2_000):
    figure, axis = plt.subplots(figsize=(16, 12), dpi=150)
    axis.imshow(np.random.default_rng(number).random((400, 400)))
    figure.canvas.draw()

# %% retry
plt.close("all")
figure, axis = plt.subplots()
axis.plot([1, 2, 3])
figure.savefig("small.png")
