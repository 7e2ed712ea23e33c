# needs: fsspec, aiohttp
# %% start
import functools
import http.server
import threading

import fsspec

with open("page.txt", "w") as file:
    file.write("hello")
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=".")
handler.func.log_message = lambda *words: None
site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
threading.Thread(target=site.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{site.server_port}/page.txt"
with fsspec.open(address) as file:
    assert file.read() == b"hello"

# %% after
import fsspec

if "address" in globals():
    fsspec.filesystem("http").invalidate_cache()
    with fsspec.open(address) as file:
        assert file.read() == b"hello"
