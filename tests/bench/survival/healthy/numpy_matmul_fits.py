# %% setup
import near_limit
import numpy as np

# %%
side = int((near_limit.room(0.95) / 8) ** 0.5)
left = np.ones((side, 40))
product = left @ left.T
near_limit.hold(0.2)
assert product[0, 0] == product[-1, -1] == 40.0
print("digest:", float(product[:50, :50].sum()))
