"""The allocator's own account of a GPU's memory: read as each release prints it, and judged with care."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from jupyter_tfguard.diagnosis.allocator_dump import AllocatorDump, allocator_dump
from jupyter_tfguard.diagnosis.diagnose import explain
from jupyter_tfguard.diagnosis.finding import Finding
from jupyter_tfguard.diagnosis.log_lines import log_lines
from jupyter_tfguard.diagnosis.pasted import Pasted
from tests.kernel.gpu_oom_rig import XLA_LOG, XLA_RAISED

pytestmark = pytest.mark.quick

MIB, GIB = 2**20, 2**30
STAMP = "2026-11-21 02:14:05.123456: "


@dataclass
class Pool:
    """A BFC allocator that has run out, as ``DumpMemoryLog`` prints it. Blocks are positive in use, negative free."""

    regions: list[list[int]]
    asked: int
    limit: int
    name: str = "GPU_0_bfc"

    @property
    def taken(self) -> int:
        return sum(abs(block) for region in self.regions for block in region)

    @property
    def used(self) -> int:
        return sum(block for region in self.regions for block in region if block > 0)

    @property
    def free(self) -> list[int]:
        return [-block for region in self.regions for block in region if block < 0]

    def text(self, release: str = "2.21", tensor: str | None = None) -> str:
        """The dump of a release: ``2.15``, ``2.21``, or ``next`` as the sources after 2.21 have it."""
        file = "external/local_xla/xla/tsl/framework/bfc_allocator.cc"
        asked = f"{self.asked / GIB:.2f}GiB (rounded to {self.asked})"
        end = " from the lower end " if release == "next" else ""
        begin = (
            f"Allocator ({self.name}) ran out of memory trying to allocate {asked}{end}requested by op model/conv/Conv2D\n"
            "If the cause is memory fragmentation maybe the environment variable "
            "'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the situation. \n"
            "Current allocation summary follows.\nCurrent allocation summary follows."
        )
        lines = ["W" + begin, f"IBFCAllocator dump for {self.name}"]
        lines.append("IBin (256): \tTotal Chunks: 40, Chunks in use: 40. 10.0KiB allocated.")
        for number, region in enumerate(self.regions):
            lines.append(f"INext region of size {sum(map(abs, region))}")
            address = 0x797202000000 + number * 2**40
            for place, block in enumerate(region):
                kind = "Free " if block < 0 else "InUse"
                tag = " tag lower" if release == "next" else ""
                lines.append(f"I{kind} at {address:x} of size {abs(block)}{tag} next {place + 1}")
                address += abs(block)
        lines.append("I     Summary of in-use Chunks by size: ")
        sizes: dict[int, int] = {}
        for block in (b for region in self.regions for b in region if b > 0):
            sizes[block] = sizes.get(block, 0) + 1
        for size, count in sorted(sizes.items()):
            lines.append(f"I{count} Chunks of size {size} totalling {count * size / GIB:.2f}GiB")
        lines.append(f"ISum Total of in-use chunks: {self.used / GIB:.2f}GiB")
        if release != "next":
            word = "Total bytes in pool" if release == "2.21" else "total_region_allocated_bytes_"
            lines.append(
                f"I{word}: {self.taken} memory_limit_: {self.limit} available bytes: "
                f"{self.limit - self.taken} curr_region_allocation_bytes_: {2 * self.limit}"
            )
        if release == "next":
            lines.append(
                f"IAllocator memory summary: rounded request {self.asked / GIB:.2f}GiB, total free in pool "
                f"{sum(self.free) / GIB:.2f}GiB, largest free chunk usable by lower end {max(self.free) / MIB:.2f}MiB, "
                f"unallocated bytes 0B, pool size {self.taken / GIB:.2f}GiB, pool limit {self.limit / GIB:.2f}GiB"
            )
        # Only the sources after 2.21 fill the last number in; before, it is always 0.
        largest = max(self.free, default=0) if release == "next" else 0
        statistics = {
            "Limit": self.limit, "InUse": self.used, "MaxInUse": self.used, "NumAllocs": 9000,
            "MaxAllocSize": max(sizes, default=0), "Reserved": 0, "PeakReserved": 0, "LargestFreeBlock": largest,
        }  # fmt: skip
        lines.append(
            "IStats: \n" + "\n".join(f"{k + ':':<18}{v:>20}" for k, v in statistics.items())
        )
        lines.append("\nW" + "*" * 60 + "_" * 40)
        if tensor is not None:
            lines.append(
                "WOP_REQUIRES failed at conv_ops_impl.h:568 : RESOURCE_EXHAUSTED: OOM when allocating tensor "
                f"with shape{tensor} and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator {self.name}"
            )
        return "\n".join(
            f"{STAMP}{line[0]} {file}:1100] {line[1:]}" if line[0] in "IWE" else line.lstrip()
            for line in lines
        )


def read(text: str) -> AllocatorDump:
    return allocator_dump(log_lines(text))


def fragmented_pool(asked: int = GIB) -> Pool:
    """8 GiB, all of it taken; every other block of 256 MiB is free."""
    return Pool([[256 * MIB, -256 * MIB] * 16], asked, 8 * GIB)


@pytest.mark.parametrize("release", ["2.15", "2.21"])
def test_a_dump_is_read_as_the_release_prints_it(release: str) -> None:
    pool = Pool([[3 * GIB, -64 * MIB, GIB, GIB], [512 * MIB, -192 * MIB]], 800 * MIB, 6 * GIB)
    found = read(pool.text(release, "[400,512,1024]"))
    assert found.limit_bytes == 6 * GIB
    assert found.used_bytes == pool.used
    assert found.pool_bytes == pool.taken
    assert found.free_bytes == 6 * GIB - pool.used
    assert found.free_in_pool_bytes == 256 * MIB
    assert found.largest_free_bytes == 192 * MIB  # from the blocks: the statistics print 0
    assert found.asked_bytes == 800 * MIB
    assert found.shape == (400, 512, 1024)
    assert found.holders_text == (
        "1 block of 3.00 GiB; 2 blocks of 1.00 GiB, 2.00 GiB in total; 1 block of 512 MiB"
    )


def test_the_largest_block_is_taken_from_the_statistics_once_they_report_it() -> None:
    found = read(fragmented_pool().text("next"))
    assert found.largest_free_bytes == 256 * MIB
    assert found.free_in_pool_bytes == 4 * GIB
    assert found.asked_bytes == GIB
    assert found.fragmented


class TestFragmentation:
    @pytest.mark.parametrize("release", ["2.15", "2.21"])
    def test_much_free_in_blocks_too_small_is_fragmentation(self, release: str) -> None:
        found = read(fragmented_pool().text(release))
        assert (found.free_in_pool_bytes, found.largest_free_bytes) == (4 * GIB, 256 * MIB)
        assert found.fragmented
        assert not found.refused_by_card

    def test_a_full_pool_is_not(self) -> None:
        assert not read(Pool([[8 * GIB]], GIB, 8 * GIB).text()).fragmented

    def test_little_more_free_than_asked_for_is_not(self) -> None:
        pool = Pool([[7 * GIB, -512 * MIB, MIB, -512 * MIB]], 900 * MIB, 9 * GIB)
        assert not read(pool.text()).fragmented

    def test_what_was_never_taken_from_the_card_is_not_in_pieces(self) -> None:
        # Growth: 2 of 8 GiB taken. Free in sum are 6 GiB; the card had no more, because others hold it.
        found = read(Pool([[2 * GIB]], GIB, 8 * GIB).text())
        assert found.free_bytes == 6 * GIB
        assert found.refused_by_card
        assert not found.fragmented

    def test_pieces_do_not_count_where_the_card_refused_what_would_have_sufficed(self) -> None:
        found = read(Pool([[256 * MIB, -256 * MIB] * 8], GIB, 8 * GIB).text())
        assert found.refused_by_card
        assert not found.fragmented

    def test_a_large_enough_block_that_is_free_contradicts_it(self) -> None:
        # Held back for a stream that may still read it: no matter of pieces.
        assert not read(Pool([[-4 * GIB, 4 * GIB]], GIB, 8 * GIB).text()).fragmented

    def test_the_end_of_a_dump_suffices_only_with_its_numbers(self) -> None:
        text = fragmented_pool().text(tensor="[256,1024,1024]")
        lines = text.splitlines()
        start = next(n for n, line in enumerate(lines) if "Summary of in-use" in line)
        found = read("\n".join(lines[start:]))
        assert found.largest_free_bytes is None
        assert found.asked_bytes == GIB
        assert found.fragmented  # 4 GiB were free in the pool, and the request failed
        without_pool = [line for line in lines[start:] if "Total bytes in pool" not in line]
        assert not read("\n".join(without_pool)).fragmented

    def test_part_of_the_blocks_does_not_report_the_largest(self) -> None:
        lines = fragmented_pool().text().splitlines()
        half = [line for n, line in enumerate(lines) if " Free  at" not in line or n % 4]
        assert read("\n".join(half)).largest_free_bytes is None

    def test_two_cards_that_print_at_once_give_no_verdict(self) -> None:
        text = fragmented_pool().text() + "\n" + "InUse:              9000000000000"
        found = read(text)
        assert found.pool_bytes is None
        assert not found.fragmented

    def test_the_verdict_is_that_of_the_allocator_itself(self) -> None:
        random_numbers = random.Random(6)
        verdicts = []
        for _ in range(300):
            blocks = [
                random_numbers.choice((-1, 1)) * random_numbers.randrange(1, 2**20) * 256
                for _ in range(40)
            ]
            # neighbours that are both free would have been one block
            region = [b for n, b in enumerate(blocks) if n == 0 or b > 0 or blocks[n - 1] > 0]
            pool = Pool([region], 0, 0)
            pool.limit = pool.taken
            pool.asked = 256 * random_numbers.randrange(1, 2**22)
            found = read(pool.text())
            assert found.largest_free_bytes == max(pool.free, default=0)
            assert found.free_in_pool_bytes == sum(pool.free)
            truly = max(pool.free, default=0) < pool.asked <= sum(pool.free) / 1.5
            assert found.fragmented == truly
            verdicts.append(truly)
        assert 20 < sum(verdicts) < 280


class TestWhichDump:
    def test_the_last_of_a_gpu_counts(self) -> None:
        first, second = fragmented_pool(), Pool([[8 * GIB]], 3 * GIB, 8 * GIB, "GPU_1_bfc")
        found = read(first.text() + "\n" + second.text())
        assert (found.asked_bytes, found.used_bytes) == (3 * GIB, 8 * GIB)

    def test_the_hosts_pinned_memory_is_no_gpu(self) -> None:
        gpu, host = fragmented_pool(), Pool([[MIB]], 3 * GIB, 64 * GIB, "gpu_host_bfc")
        assert read(gpu.text() + "\n" + host.text()).limit_bytes == 8 * GIB
        assert read(host.text()).limit_bytes is None

    def test_a_wish_that_may_fail_is_no_request(self) -> None:
        text = (
            f"{STAMP}W tensorflow/core/common_runtime/bfc_allocator.cc:243] Allocator (GPU_0_bfc) ran out of memory "
            "trying to allocate 1.25GiB with freed_by_count=0. The caller indicates that this is not a failure, but may mean "
            "that there could be performance gains if more memory were available."
        )
        assert read(text) == AllocatorDump()

    def test_without_a_dump_the_error_reports_what_was_asked(self) -> None:
        text = "ResourceExhaustedError: OOM when allocating tensor with shape[32,1024] and type half on /device:GPU:0 by allocator GPU_0_bfc"
        assert read(text) == AllocatorDump(shape=(32, 1024), asked_bytes=65536)
        assert read(text.replace("GPU_0_bfc", "cpu")) == AllocatorDump()
        xla = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4000000000 bytes."
        assert read(xla).asked_bytes == 4000000000

    def test_xla_reports_request_and_limit(self) -> None:
        found = read(XLA_LOG)
        assert found.from_xla
        assert found.numbers == "requested 4.02 GiB, limit 2.00 GiB"
        assert read(XLA_RAISED).numbers == "requested 4.02 GiB"


def test_of_the_asynchronous_allocator_only_the_request_is_read() -> None:
    text = (
        f"{STAMP}E external/local_xla/xla/stream_executor/gpu/gpu_cudamallocasync_allocator.cc:359] gpu_async_0 "
        "cuMemAllocAsync failed to allocate 2147483648 bytes: CUDA error: out of memory (CUDA_ERROR_OUT_OF_MEMORY)\n"
        " Reported by CUDA: Free memory/Total memory: 3407872/16945512448\n"
        f"{STAMP}E a/gpu_cudamallocasync_allocator.cc:364] Stats: Limit:                     15000000000\n"
        "InUse:                     12000000000\nMaxInUse:                  12000000000\n"
    )
    assert read(text) == AllocatorDump(asked_bytes=2147483648)


class TestReport:
    def best(self, pool: Pool) -> Finding:
        return explain(Pasted(pool.text(tensor="[256,1024,1024]"))).best

    def test_fragmentation_leads_to_the_other_allocator_and_not_to_growth(self) -> None:
        best = self.best(fragmented_pool())
        assert best.cause == "gpu_oom"
        facts = " ".join(fact.text for fact in best.because)
        assert "free 4.00 GiB of 8.00 GiB, largest free block 256 MiB" in facts
        assert "16 blocks of 256 MiB, 4.00 GiB in total" in facts
        first = best.advice[0]
        assert (first.code or "").startswith("TF_GPU_ALLOCATOR=cuda_malloc_async")
        assert "compute capability 6.0" in first.text
        assert not any("ALLOW_GROWTH" in (a.code or "") for a in best.advice)

    def test_a_card_that_refused_leads_to_who_else_holds_it(self) -> None:
        best = self.best(Pool([[2 * GIB]], GIB, 8 * GIB))
        facts = " ".join(fact.text for fact in best.because)
        assert "below its own limit (6.00 GiB left), but no memory was free on the card" in facts
        assert best.advice[0].title.startswith("Check which other")
        assert not any("cuda_malloc_async" in (a.code or "") for a in best.advice)
        assert len({a.title for a in best.advice}) == len(best.advice)

    def test_a_pool_that_is_full_leads_to_a_smaller_batch(self) -> None:
        best = self.best(Pool([[8 * GIB]], GIB, 8 * GIB))
        assert best.advice[0].title == "Use a smaller batch."
        assert "batch_size=128" in (best.advice[0].code or "")


def test_a_long_dump_is_read_in_time_in_proportion() -> None:
    pool = Pool([[MIB, -MIB] * 20000], GIB, 40 * GIB)
    found = read(pool.text())
    assert found.largest_free_bytes == MIB
