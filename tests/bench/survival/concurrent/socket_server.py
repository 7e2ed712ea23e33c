# %% setup
import asyncio

received = []


async def take(reader, writer):
    while block := await reader.read(1 << 20):
        received.append(block)


async def send(port):
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        writer.write(b"x" * (1 << 20))
        await writer.drain()


# %%
server = await asyncio.start_server(take, "127.0.0.1", 0)  # noqa: F704
port = server.sockets[0].getsockname()[1]
await asyncio.gather(send(port), send(port))  # noqa: F704

# %% retry
received.clear()
server.close()
await asyncio.sleep(0.2)  # noqa: F704
assert sum(map(len, received)) < 200 << 20
