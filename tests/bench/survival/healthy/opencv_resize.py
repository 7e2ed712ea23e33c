# needs: cv2
# %% setup
import cv2
import near_limit
import numpy as np

photo = np.full((1_000, 1_000, 3), 100, dtype="uint8")
cv2.resize(photo, (10, 10))

# %%
images = []
while near_limit.room(0.945) > 24 * near_limit.MIB:
    images.append(cv2.resize(photo, (1_600, 1_600), interpolation=cv2.INTER_LINEAR))
near_limit.hold()
assert all(image[5, 5, 0] == 100 for image in images)
print("digest:", int(images[0].sum()))
