"""What TensorFlow logs and raises when a GPU's memory runs out, in its own words."""

from __future__ import annotations

GIB = 1024**3
STAMP = "I0000 00:00:1762253213.310854  475186 bfc_allocator.cc:1058] "
TENSOR = (
    "OOM when allocating tensor with shape[256,512,64,64] and type float on "
    "/job:localhost/replica:0/task:0/device:{device} by allocator {allocator}"
)
ON_GPU = TENSOR.format(device="GPU:0", allocator="GPU_0_bfc")
ON_CPU = TENSOR.format(device="CPU:0", allocator="cpu")
PINNED = TENSOR.format(device="GPU:0", allocator="gpu_host_bfc")
XLA = "Out of memory while trying to allocate 2147483648 bytes."
# TensorFlow 2.21 on an H100 with TF_PER_DEVICE_MEMORY_LIMIT_MB=2048, as logged and raised; stacks left out.
XLA_LOG = """\
W0000 00:00:1795702238.365720    2222 stream_executor.h:413] Not enough memory to allocate 8589934592 on device 0 within provided limit.  limit=2147483648]
W0000 00:00:1795702238.365757    2222 stream_executor.h:413] Not enough memory to allocate 4565042688 on device 0 within provided limit.  limit=2147483648]
W0000 00:00:1795702238.365764    2222 bfc_allocator.cc:311] Allocator (GPU_0_bfc) ran out of memory trying to allocate 4.02GiB with freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be performance gains if more memory were available.
W0000 00:00:1795702238.387072    2222 op_kernel.cc:1858] OP_REQUIRES failed at xla_ops.cc:602 : RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4.02GiB. [tf-allocator-allocation-error='']
"""
XLA_RAISED = """\
Graph execution error:

Detected at node StatefulPartitionedCall defined at (most recent call last):
<stack traces unavailable>
Out of memory while trying to allocate 4.02GiB.
\t [[{{node StatefulPartitionedCall}}]] [Op:__inference_multi_step_on_iterator_1507]"""
COPY = (
    "Failed copying input tensor from /job:localhost/replica:0/task:0/device:CPU:0 to /job:localhost/replica:0/task:0/"
    "device:GPU:0 in order to run _EagerConst: Dst tensor is not initialized."
)


def dump(asked: int, pool: int, used: int, free_blocks: list[int], limit: int) -> str:
    """What the allocator logs, in the form of TensorFlow 2.21."""
    lines = [
        f"W{STAMP[1:]}Allocator (GPU_0_bfc) ran out of memory trying to allocate {asked / GIB:.2f}GiB "
        f"(rounded to {asked})requested by op Conv2D",
        "If the cause is memory fragmentation maybe the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will "
        "improve the situation.",
        f"{STAMP}BFCAllocator dump for GPU_0_bfc",
        f"{STAMP}Next region of size {pool}",
        f"{STAMP}InUse at 797202000000 of size {used // 4} next 1",
        *(f"{STAMP}Free  at 797302000000 of size {size} next 2" for size in free_blocks),
        f"{STAMP}     Summary of in-use Chunks by size: ",
        f"{STAMP}4 Chunks of size {used // 4} totalling {used / GIB:.2f}GiB",
        f"{STAMP}Sum Total of in-use chunks: {used / GIB:.2f}GiB",
        f"{STAMP}Total bytes in pool: {pool} memory_limit_: {limit} available bytes: {limit - pool} "
        f"curr_region_allocation_bytes_: {2 * limit}",
        f"{STAMP}Stats: ",
        f"Limit: {limit:>26}",
        f"InUse: {used:>26}",
        f"MaxInUse: {used:>23}",
        f"LargestFreeBlock: {0:>15}",
        "",
        f"W{STAMP[1:]}*****************************xx____xxxx",
    ]
    return "\n".join(lines) + "\n"


FULL = dump(2 * GIB, 14 * GIB, 13 * GIB, [GIB // 2, GIB // 2], 14 * GIB)
FRAGMENTED = dump(2 * GIB, 14 * GIB, 8 * GIB, [GIB] * 6, 14 * GIB)
