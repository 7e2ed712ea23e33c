/*
 * TensorFlow's pool.
 *
 * Tensors of 256 KiB and more come from a tsl::BFCAllocator, a pool that allocates regions with
 * malloc, each twice as large as the one before, and never frees them. So two kinds of hooks are
 * needed: the pool's virtual functions see the tensor, malloc's slots see the region.
 *
 *     an op's output (OpKernelContext::allocate_*)                refused: ResourceExhaustedError
 *     another tensor (tf.constant, tf.data, a helper of oneDNN)   on disk: NULL would be a crash
 *     a region larger than needed                                 refused at once: the pool asks
 *                                                                 for less, or the tensor is
 *                                                                 placed outside the pool
 *     everything else (Eigen, oneDNN, operator new)               on disk
 *
 * Pools of a GPU have the same class. They are distinguished by their memory type and not changed.
 * Source: xla/tsl/framework/bfc_allocator.h, allocator.h of TensorFlow 2.15 and 2.21.
 */
#include "decide.h"
#include "disk.h"
#include "grants.h"
#include "patch.h"
#include "pool.h"
#include "process.h"
#include "watch.h"

struct pool_class pool_class;
struct pool pools[8];
_Atomic int64_t release_us;

static struct outside_tensor {
    _Atomic(void *) block; /* BEING_MADE: the entry is reserved */
    size_t size;
} outside_tensors[256];
static char BEING_MADE[1];
static atomic_int outside_tensor_count;

static struct pool *find_pool(void *address)
{
    for (size_t i = 0; i < LENGTH(pools); i++) {
        void *known = NULL;
        if (atomic_load(&pools[i].address) == address ||
            atomic_compare_exchange_strong(&pools[i].address, &known, address) ||
            known == address) {
            return &pools[i];
        }
    }
    return NULL;
}

/* True for private anonymous memory, which is neither a device's nor pinned by a driver. */
static bool is_malloc_memory(const void *block)
{
    struct address_query query = {.address = (uintptr_t)block};
    return find_mapping(holds_address, &query) && query.found.is_private &&
           query.found.inode == 0 && query.found.protection == (PROT_READ | PROT_WRITE);
}

static bool is_gated(struct pool *pool)
{
    if (pool == NULL || atomic_load(&pool->kind) == OTHER_POOL) {
        return false;
    }
    int type = pool_class.memory_type(atomic_load(&pool->address));
    return type == UNKNOWN_MEMORY || type == PAGEABLE_MEMORY;
}

static struct outside_tensor *find_outside_tensor(const void *block)
{
    if (__builtin_expect(atomic_load(&outside_tensor_count) == 0, 1) || block == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < LENGTH(outside_tensors); i++) {
        if (atomic_load(&outside_tensors[i].block) == block) {
            return &outside_tensors[i];
        }
    }
    return NULL;
}

/* Allocates a tensor outside the pool. The pool's DeallocateRaw() would end the process for such a
 * tensor, so pool_deallocate() frees it. */
static void *allocate_outside(size_t size, size_t alignment, bool on_disk)
{
    for (size_t i = 0; i < LENGTH(outside_tensors); i++) {
        void *block = NULL; /* a free entry */
        if (!atomic_compare_exchange_strong(&outside_tensors[i].block, &block,
                                            (void *)BEING_MADE)) {
            continue;
        }
        block = NULL;
        if (on_disk) {
            stop_if_beyond(size);
            block = disk_allocate(size, alignment);
        } else if (posix_memalign(&block, alignment, size) != 0) {
            block = NULL;
        }
        outside_tensors[i].size = size;
        atomic_fetch_add(&outside_tensor_count, block != NULL);
        atomic_store(&outside_tensors[i].block, block);
        return block;
    }
    return NULL;
}

/* A chunk of the pool without resident pages costs as much as new memory. Returns the result for
 * the caller. */
static void *check_chunk(void *pool, void *chunk, size_t size, size_t alignment)
{
    int64_t untouched = untouched_bytes(chunk, size);
    if (untouched < (int64_t)LARGE_BYTES) {
        return chunk;
    }
    int saved = errno;
    self.inside = true;
    enum answer answer = decide((size_t)untouched, TENSORFLOW_POOL);
    void *instead = answer == ON_DISK ? allocate_outside(size, alignment, true) : NULL;
    self.inside = false;
    errno = saved;
    if (answer == ON_DISK && instead == NULL) {
        trip_now();
        answer = GRANT;
    }
    if (answer == GRANT) {
        note_grant(chunk, size, false);
        return chunk;
    }
    pool_class.deallocate(pool, chunk);
    return instead;
}

static void *try_pool(void *pool, size_t alignment, size_t size,
                      const struct allocation_attributes *attributes)
{
    self.pool_request = size;
    self.pool_answer = NOT_REFUSED;
    void *block = pool_class.allocate_with(pool, alignment, size, attributes);
    self.pool_request = 0;
    return block;
}

/* Handles a request for which the pool got no region. */
static void *without_region(void *pool, size_t alignment, size_t size,
                            const struct allocation_attributes *attributes)
{
    void *block = NULL;
    enum answer answer = self.pool_answer == WANTED_ON_DISK ? ON_DISK : REFUSE;
    self.inside = true;
    if (self.pool_answer == TOO_LARGE) { /* some pools retry with a smaller region only once */
        answer = decide(size, TENSORFLOW_POOL);
    }
    if (answer != REFUSE) {
        block = allocate_outside(size, alignment, answer == ON_DISK);
        if (block == NULL) {
            /* A refusal would certainly end the process; granting may not. */
            trip_now();
            block = pool_class.allocate_with(pool, alignment, size, attributes);
        } else if (answer == GRANT) {
            note_grant(block, size, false);
        }
    }
    self.inside = false;
    return block;
}

static const int64_t RELEASE_LIMIT_US = 500000; /* a child forked meanwhile sees no end of it */

/* A release holds the free memory of the pool for some milliseconds. A request from another thread
 * would get new memory of the system, just when that is short. */
static void wait_for_release(void)
{
    static const struct timespec pause = {0, 200000};
    int64_t began;
    while (!self.releasing_pool && (began = atomic_load(&release_us)) != 0 &&
           now_us() - began < RELEASE_LIMIT_US) {
        nanosleep(&pause, NULL);
    }
}

static void learn_kind(struct pool *pool, const void *block)
{
    if (atomic_load(&pool->kind) == NEW_POOL && block != NULL) {
        atomic_store(&pool->kind, is_malloc_memory(block) ? HOST_POOL : OTHER_POOL);
    }
}

static void *pool_allocate_with(void *address, size_t alignment, size_t size,
                                const struct allocation_attributes *attributes)
{
    struct pool *pool;
    wait_for_release();
    if (size < LARGE_BYTES || size > HUGE_BYTES || !atomic_load(&armed) || self.inside ||
        self.releasing_pool || !is_gated(pool = find_pool(address))) {
        return pool_class.allocate_with(address, alignment, size, attributes);
    }
    if (atomic_load(&tensorflow_hooks) != REFUSES) {
        void *block = pool_class.allocate_with(address, alignment, size, attributes);
        learn_kind(pool, block);
        return block;
    }
    /* First without the wait: no thread can free memory during it, because oneDNN's allocator holds
     * its lock around this call. */
    struct allocation_attributes once = *attributes;
    once.retry_on_failure = false;
    void *block = try_pool(address, alignment, size, &once);
    if (block == NULL && self.pool_answer == NOT_REFUSED && attributes->retry_on_failure) {
        block = try_pool(address, alignment, size, attributes); /* the pool is at its own limit */
    }
    if (block == NULL) {
        return without_region(address, alignment, size, attributes);
    }
    learn_kind(pool, block);
    if (atomic_load(&pool->kind) == OTHER_POOL) {
        return block;
    }
    if (atomic_load(&known_available) < (int64_t)size + atomic_load(&plenty_bytes)) {
        return check_chunk(address, block, size, alignment);
    }
    note_grant(block, size, false);
    return block;
}

static void *pool_allocate(void *pool, size_t alignment, size_t size)
{
    static const struct allocation_attributes usual = {.retry_on_failure = true};
    return pool_allocate_with(pool, alignment, size, &usual);
}

static void pool_deallocate(void *pool, void *block)
{
    struct outside_tensor *tensor = find_outside_tensor(block);
    if (tensor == NULL) {
        pool_class.deallocate(pool, block);
        return;
    }
    atomic_store(&tensor->block, NULL);
    atomic_fetch_sub(&outside_tensor_count, 1);
    free(block);
}

static size_t pool_requested_size(const void *pool, const void *block)
{
    struct outside_tensor *tensor = find_outside_tensor(block);
    return tensor == NULL ? pool_class.requested_size(pool, block) : tensor->size;
}

static size_t pool_allocated_size(const void *pool, const void *block)
{
    struct outside_tensor *tensor = find_outside_tensor(block);
    return tensor == NULL ? pool_class.allocated_size(pool, block) : tensor->size;
}

static int64_t pool_allocation_id(const void *pool, const void *block)
{
    return find_outside_tensor(block) == NULL ? pool_class.allocation_id(pool, block) : 0;
}

static const struct virtual_function {
    const char *name;
    void **original;
    void *replacement;
} VIRTUAL_FUNCTIONS[] = {
    {"_ZN3tsl12BFCAllocator11AllocateRawEmm", (void **)&pool_class.allocate, (void *)pool_allocate},
    {"_ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE",
     (void **)&pool_class.allocate_with, (void *)pool_allocate_with},
    {"_ZN3tsl12BFCAllocator13DeallocateRawEPv", (void **)&pool_class.deallocate,
     (void *)pool_deallocate},
    {"_ZNK3tsl12BFCAllocator13RequestedSizeEPKv", (void **)&pool_class.requested_size,
     (void *)pool_requested_size},
    {"_ZNK3tsl12BFCAllocator13AllocatedSizeEPKv", (void **)&pool_class.allocated_size,
     (void *)pool_allocated_size},
    {"_ZNK3tsl12BFCAllocator12AllocationIdEPKv", (void **)&pool_class.allocation_id,
     (void *)pool_allocation_id},
};

/* Stays patched while a tensor is outside the pool: the original cannot handle such a tensor. */
static bool knows_outside_tensors(const void *replacement)
{
    return replacement != (void *)pool_allocate && replacement != (void *)pool_allocate_with;
}

static void **slots[LENGTH(VIRTUAL_FUNCTIONS)];

/* Finds the slots of the pool's vtable. False if they differ from the tested versions. */
bool find_virtual_functions(void *framework)
{
    enum { MOST_ENTRIES = 40 };
    Dl_info about;
    ElfW(Sym) *symbol = NULL;
    void **vtable = dlsym(framework, "_ZTVN3tsl12BFCAllocatorE");
    *(void **)&pool_class.memory_type = dlsym(framework, "_ZNK3tsl12BFCAllocator13GetMemoryTypeEv");
    *(void **)&pool_class.allocate_quietly =
        dlsym(framework, "_ZN3tsl12BFCAllocator19AllocateRawInternalEmmbm");
    if (vtable == NULL || pool_class.memory_type == NULL ||
        dladdr1(vtable, &about, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL) {
        return false;
    }
    size_t entries = symbol->st_size / sizeof *vtable;
    for (size_t i = 0; i < LENGTH(VIRTUAL_FUNCTIONS); i++) {
        void *function = dlsym(framework, VIRTUAL_FUNCTIONS[i].name);
        size_t matches = 0;
        for (size_t k = 0; k < entries && k < MOST_ENTRIES; k++) {
            if (function != NULL &&
                (vtable[k] == function || vtable[k] == VIRTUAL_FUNCTIONS[i].replacement)) {
                slots[i] = &vtable[k];
                matches++;
            }
        }
        if (matches != 1) {
            return false;
        }
        *VIRTUAL_FUNCTIONS[i].original = function;
    }
    return true;
}

bool patch_virtual_functions(bool refuses)
{
    enum { POOL_FUNCTIONS = 2 }; /* the first in the table */
    for (size_t i = 0; i < (refuses ? LENGTH(VIRTUAL_FUNCTIONS) : POOL_FUNCTIONS); i++) {
        if (!patch(PART_TENSORFLOW, slots[i], VIRTUAL_FUNCTIONS[i].replacement)) {
            return false;
        }
    }
    return true;
}

void restore_tensorflow(void)
{
    atomic_store(&tensorflow_hooks, NO_HOOKS);
    restore(PART_TENSORFLOW, atomic_load(&outside_tensor_count) > 0 ? knows_outside_tensors : NULL);
}
