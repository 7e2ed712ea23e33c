# %% setup
import threading
import zlib

packed = zlib.compress(bytes(12 << 20))
images = {}


def unpack(worker):
    number = 0
    while True:
        images[worker, number] = zlib.decompress(packed)
        number += 1


# %%
threads = [threading.Thread(target=unpack, args=(k,)) for k in range(4)]
for one in threads:
    one.start()
for one in threads:
    one.join()

# %% retry
images.clear()
assert len(zlib.decompress(packed)) == 12 << 20
