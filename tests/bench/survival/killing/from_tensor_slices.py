# %% setup
import numpy as np
import tensorflow as tf

frames = np.zeros((90, 512, 512, 12), dtype="float32") + 0.5

# %%
clips = tf.data.Dataset.from_tensor_slices((frames, frames[:, ::-1]))
for clip, mirrored in clips.batch(4).take(2):
    print(clip.shape, mirrored.shape)

# %% retry
clips = tf.data.Dataset.from_tensor_slices(frames[:8])
assert len(list(clips)) == 8
