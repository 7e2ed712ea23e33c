# %% setup
import threading

found = []


def scan():
    while True:
        found.append(bytearray(b"x" * (1 << 20)))


# %%
threads = [threading.Thread(target=scan) for _ in range(4)]
for one in threads:
    one.start()
for one in threads:
    one.join()

# %% retry
found.clear()
assert not any(one.is_alive() for one in threads)
