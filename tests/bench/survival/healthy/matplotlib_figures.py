# needs: matplotlib
# %% setup
import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import near_limit
import numpy as np

figure, axis = plt.subplots()
figure.savefig("first.png")
plt.close(figure)

# %%
kept = near_limit.fill(0.94, spare=70 * near_limit.MIB)
for number in range(4):
    figure, axis = plt.subplots(figsize=(12, 9), dpi=120)
    axis.imshow(np.arange(250_000.0).reshape(500, 500) * number)
    figure.savefig(f"figure{number}.png")
    plt.close(figure)
assert plt.imread("figure3.png").shape[0] == 1_080
print("digest:", len(plt.get_fignums()), len(kept) > 3)
