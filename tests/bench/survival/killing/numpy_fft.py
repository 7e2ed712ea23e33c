# %% setup
import numpy as np

signal = np.random.default_rng(8).normal(size=40_000_000)

# %%
spectrum = np.fft.fft(signal)
power = np.abs(spectrum) ** 2

# %% retry
power = np.abs(np.fft.rfft(signal[:1_000_000])) ** 2
assert power.shape == (500_001,)
