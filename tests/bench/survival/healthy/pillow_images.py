# needs: PIL
# %% setup
import near_limit
from PIL import Image

# %%
# Pillow has an arena of its own.
images = []
while near_limit.room(0.94) > 16 * near_limit.MIB:
    images.append(Image.new("RGB", (1_200, 800), (len(images) % 256, 0, 255)))
near_limit.hold()
small = [image.resize((8, 8)).getpixel((3, 3))[0] for image in images[:50]]
assert small == list(range(50))
print("digest:", sum(small))
