# %% setup
import near_limit
import numpy as np

signal = np.zeros(1 << 21)
signal[5] = 1.0
np.fft.rfft(signal)

# %%
kept = near_limit.fill(0.95, spare=90 * near_limit.MIB)
spectrum = np.fft.fft(signal)
near_limit.hold(0.2)
assert abs(abs(spectrum[77]) - 1.0) < 1e-9
print("digest:", round(float(np.abs(spectrum[:1_000]).sum()), 6), len(kept) > 3)
