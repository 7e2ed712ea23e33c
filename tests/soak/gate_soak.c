/*
 * Random allocations through the gate of jupyter_tfguard/guard/native, which is included here, from eight threads.
 * Usage: gate_soak FOLDER COUNT SEED. Built and run by gate_soak.py, with sanitizers.
 *
 * A memory group made of files is filled and emptied by another thread, so that requests are granted, refused and placed on disk.
 * The sanitizers bring a malloc of their own, which cannot free a block on disk: here soak_free() and soak_realloc() do to such a
 * block what glibc does.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>

static void soak_free(void *block);
static void *soak_realloc(void *block, size_t size);
static size_t soak_usable(void *block);
#define free soak_free
#define realloc soak_realloc
#define malloc_usable_size soak_usable
#include "../../jupyter_tfguard/guard/native/decide.c"
#include "../../jupyter_tfguard/guard/native/disk.c"
#include "../../jupyter_tfguard/guard/native/frames.c"
#include "../../jupyter_tfguard/guard/native/give_back.c"
#include "../../jupyter_tfguard/guard/native/grants.c"
#include "../../jupyter_tfguard/guard/native/memory.c"
#include "../../jupyter_tfguard/guard/native/numpy.c"
#include "../../jupyter_tfguard/guard/native/packages.c"
#include "../../jupyter_tfguard/guard/native/patch.c"
#include "../../jupyter_tfguard/guard/native/pool.c"
#include "../../jupyter_tfguard/guard/native/process.c"
#include "../../jupyter_tfguard/guard/native/python.c"
#include "../../jupyter_tfguard/guard/native/refusal.c"
#include "../../jupyter_tfguard/guard/native/slow.c"
#include "../../jupyter_tfguard/guard/native/start.c"
#include "../../jupyter_tfguard/guard/native/tensorflow.c"
#include "../../jupyter_tfguard/guard/native/watch.c"
#undef free
#undef realloc
#undef malloc_usable_size

enum { THREADS = 8, SLOTS = 6, LIMIT_MIB = 512 };

static const char *folder;
static long count_each;
static unsigned seed;
static atomic_bool done;
static atomic_long damaged, failed, wrong_alignment, on_disk;

/* --- blocks on disk, as glibc treats them */

static struct disk_block *lock_disk_block(const void *block)
{
    size_t offset = (uintptr_t)block & (page_bytes - 1);
    if (block == NULL || atomic_load(&disk_block_count) == 0 || (offset & (offset - 1)) != 0) {
        return NULL;
    }
    pthread_mutex_lock(&disk_lock);
    update_disk_blocks();
    struct disk_block *found = disk_block_at(block);
    if (found == NULL) {
        pthread_mutex_unlock(&disk_lock);
    }
    return found;
}

static void soak_free(void *block)
{
    struct disk_block *found = lock_disk_block(block);
    if (found == NULL) {
        free(block);
        return;
    }
    munmap(found->start, found->mapped);
    pthread_mutex_unlock(&disk_lock);
}

static void *soak_realloc(void *block, size_t size)
{
    struct disk_block *found = lock_disk_block(block);
    if (found == NULL) {
        return realloc(block, size);
    }
    size_t offset = (size_t)((char *)block - found->start), mapped = round_up(size + offset, page_bytes);
    char *moved = mremap(found->start, found->mapped, mapped, MREMAP_MAYMOVE);
    if (moved != MAP_FAILED) {
        ((size_t *)(moved + offset))[-1] = (mapped - (offset - HEADER_BYTES)) | IS_MMAPPED;
    }
    pthread_mutex_unlock(&disk_lock);
    return moved == MAP_FAILED ? NULL : moved + offset;
}

static size_t soak_usable(void *block)
{
    struct disk_block *found = lock_disk_block(block);
    if (found == NULL) {
        return malloc_usable_size(block);
    }
    size_t usable = found->mapped - (size_t)((char *)block - found->start);
    pthread_mutex_unlock(&disk_lock);
    return usable;
}

/* --- what NumPy, CPython and TensorFlow's pool would be */

static void *plain_malloc(void *context, size_t size) { (void)context; return malloc(size); }
static void *plain_calloc(void *context, size_t count, size_t size) { (void)context; return calloc(count, size); }
static void *plain_realloc(void *context, void *block, size_t size) { (void)context; return soak_realloc(block, size); }
static void numpy_free(void *context, void *block, size_t size) { (void)context; (void)size; soak_free(block); }
static void python_free(void *context, void *block) { (void)context; soak_free(block); }
static int always(void) { return 1; }
static int unknown_memory(const void *pool) { (void)pool; return UNKNOWN_MEMORY; }

static void *region_allocate(void *pool, size_t alignment, size_t size, const struct allocation_attributes *attributes)
{
    void *block;
    (void)pool, (void)attributes;
    size *= now_us() % 2 + 1; /* a pool that asks for more than it needs, and never for less */
    return tensorflow_posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

static void region_free(void *pool, void *block) { (void)pool; soak_free(block); }

/* Its return address is in the first range: an op's output. */
__attribute__((noinline)) static void *op_allocate(size_t size)
{
    void *volatile block = pool_allocate(pools, 64, size);
    return block;
}

/* --- one thread */

struct block {
    char *start;
    size_t size;
    int kind;
    char mark;
};

static void mark(struct block *block, char value)
{
    block->mark = value;
    if (block->start != NULL && block->size > 0) {
        block->start[0] = block->start[block->size - 1] = block->start[block->size / 2] = value;
    }
}

static void check(const struct block *block, size_t size)
{
    size_t middle = block->size / 2;
    if (size > 0 && (block->start[0] != block->mark || (middle < size && block->start[middle] != block->mark) ||
                     (block->size <= size && block->start[block->size - 1] != block->mark))) {
        atomic_fetch_add(&damaged, 1);
    }
}

static void *make(int kind, size_t size, size_t *alignment)
{
    void *block = NULL;
    *alignment = kind == 6 || kind >= 9 ? 64 : kind == 7 ? 4096 : 16;
    switch (kind) {
    case 0: return numpy_malloc(NULL, size);
    case 1: return numpy_calloc(NULL, size / 8 + 1, 8);
    case 2: return python_malloc(NULL, size);
    case 3: return python_calloc(NULL, 1, size);
    case 4: return tensorflow_malloc(size);
    case 5: return tensorflow_calloc(size / 4 + 1, 4);
    case 6: return tensorflow_posix_memalign(&block, 64, size) == 0 ? block : NULL;
    case 7: return tensorflow_aligned_alloc(4096, round_up(size, 4096));
    case 8: return pandas_realloc(NULL, size);
    case 9: return pool_allocate(pools, 64, size);
    default: return op_allocate(size);
    }
}

static void drop(struct block *block)
{
    if (block->start == NULL) {
        return;
    }
    check(block, block->size);
    if (block->kind >= 9) {
        pool_deallocate(pools, block->start);
    } else {
        soak_free(block->start);
    }
    block->start = NULL;
}

static void resize(struct block *block, size_t size)
{
    char *moved;
    switch (block->kind) {
    case 0:
    case 1: moved = numpy_realloc(NULL, block->start, size); break;
    case 2:
    case 3: moved = python_realloc(NULL, block->start, size); break;
    case 8: moved = pandas_realloc(block->start, size); break;
    default: return;
    }
    if (moved == NULL) {
        atomic_fetch_add(&failed, 1);
        check(block, block->size); /* a refusal leaves the block as it was */
        return;
    }
    block->start = moved;
    check(block, size);
    block->size = size;
    mark(block, block->mark);
}

static void *work(void *argument)
{
    unsigned state = seed * 7919 + (unsigned)(uintptr_t)argument;
    struct block blocks[SLOTS] = {{0}};
    for (long i = 0; i < count_each; i++) {
        struct block *block = &blocks[(unsigned)rand_r(&state) % SLOTS];
        unsigned dice = (unsigned)rand_r(&state);
        size_t size = dice % 4 ? (size_t)rand_r(&state) % (64 << 10) + 1 : (size_t)rand_r(&state) % (9 << 20) + 1;
        if (block->start != NULL && dice % 3 == 0) {
            resize(block, size);
            continue;
        }
        drop(block);
        size_t alignment;
        block->kind = rand_r(&state) % 11;
        block->size = size;
        errno = 0;
        block->start = make(block->kind, size, &alignment);
        if (block->start == NULL) {
            atomic_fetch_add(&failed, 1);
            if (block->kind != 6 && block->kind < 9 && errno != ENOMEM) {
                atomic_fetch_add(&damaged, 1);
            }
        } else if ((uintptr_t)block->start % alignment != 0) {
            atomic_fetch_add(&wrong_alignment, 1);
        }
        mark(block, (char)rand_r(&state));
    }
    for (int i = 0; i < SLOTS; i++) {
        drop(&blocks[i]);
    }
    return NULL;
}

/* --- the memory group, and cells that begin and end */

static void write_file(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    if (fd < 0 || pwrite(fd, text, strlen(text), 0) < 0) {
        abort();
    }
    close(fd);
}

static void *wander(void *unused)
{
    unsigned state = seed;
    (void)unused;
    for (long round = 0; !atomic_load(&done); round++) {
        char text[32];
        struct snapshot seen;
        /* Short for longer than a request waits, then plenty for some time. */
        int left = round / 150 % 4 == 0 ? rand_r(&state) % 16 : rand_r(&state) % LIMIT_MIB;
        snprintf(text, sizeof text, "%015ld\n", (long)(LIMIT_MIB - left) * MIB);
        write_file("memory.current", text);
        struct levels cell = {20 * MIB, 30 * MIB, 8 * MIB, LIMIT_MIB * MIB, 0.06, 0};
        if (round % 7 == 0) {
            tfguard_arm(&cell);
        } else if (round % 50 == 49) {
            tfguard_disarm();
        }
        tfguard_snapshot(&seen);
        atomic_store(&on_disk, seen.spilled_count + atomic_load(&on_disk));
        atomic_store(&spilled_count, 0);
        if (seen.tripped && round % 3 == 0) {
            tfguard_delivered();
        }
        usleep(2000);
    }
    tfguard_disarm();
    return NULL;
}

static void ignore(int number) { (void)number; }

int main(int argc, char **argv)
{
    if (argc != 4) {
        return 2;
    }
    folder = argv[1];
    count_each = atol(argv[2]) / THREADS;
    seed = (unsigned)atol(argv[3]);
    char limit[32];
    snprintf(limit, sizeof limit, "%ld\n", (long)LIMIT_MIB * MIB);
    write_file("memory.max", limit);
    write_file("memory.current", "000000000000000\n");
    write_file("memory.stat", "inactive_file 0\nactive_file 0\n");

    const int version = 2;
    signal(SIGUSR1, ignore);
    tfguard_use_groups(1, &version, &folder);
    if (tfguard_start(SIGUSR1) != 0) {
        return 2;
    }
    numpy = (struct numpy_allocator){NULL, plain_malloc, plain_calloc, plain_realloc, numpy_free};
    python = (struct python_allocator){NULL, plain_malloc, plain_calloc, plain_realloc, python_free};
    holds_interpreter_lock = always;
    pool_class.allocate_with = region_allocate;
    pool_class.deallocate = region_free;
    pool_class.memory_type = unknown_memory;
    allocate_ranges[0] = (struct range){(const char *)op_allocate, (const char *)op_allocate + 256};
    strcpy(disk_folder, folder);
    disk_quota = 8 * GIB;
    atomic_store(&disk_armed, true);

    pthread_t threads[THREADS], other;
    pthread_create(&other, NULL, wander, NULL);
    int64_t begun = now_us();
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    double seconds = (double)(now_us() - begun) / 1e6;
    atomic_store(&done, true);
    pthread_join(other, NULL);
    tfguard_stop();
    pthread_mutex_lock(&disk_lock);
    update_disk_blocks();
    pthread_mutex_unlock(&disk_lock);
    printf("{\"operations\": %ld, \"seconds\": %.1f, \"refused\": %ld, \"on_disk\": %ld, \"damaged\": %ld, "
           "\"wrong_alignment\": %ld, \"blocks_left\": %d, \"tensors_left\": %d}\n",
           count_each * THREADS, seconds, atomic_load(&failed), atomic_load(&on_disk), atomic_load(&damaged),
           atomic_load(&wrong_alignment), atomic_load(&disk_block_count), atomic_load(&outside_tensor_count));
    return atomic_load(&damaged) || atomic_load(&wrong_alignment) || atomic_load(&disk_block_count) ||
           atomic_load(&outside_tensor_count);
}
