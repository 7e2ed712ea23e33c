/* TensorFlow's pool, a tsl::BFCAllocator. */
#pragma once
#include "base.h"

struct allocation_attributes { /* tsl::AllocationAttributes */
    bool retry_on_failure;     /* waits for memory for up to 10 s */
    bool is_logged;
    void *freed_by;
};

enum memory_type { UNKNOWN_MEMORY, DEVICE_MEMORY, PAGEABLE_MEMORY, PINNED_MEMORY };

extern struct pool_class {
    void *(*allocate)(void *, size_t, size_t);
    void *(*allocate_with)(void *, size_t, size_t, const struct allocation_attributes *);
    void (*deallocate)(void *, void *);
    size_t (*requested_size)(const void *, const void *);
    size_t (*allocated_size)(const void *, const void *);
    int64_t (*allocation_id)(const void *, const void *);
    int (*memory_type)(const void *);
    /* Part of `allocate_with`; without the warning that memory is short. NULL: not known. */
    void *(*allocate_quietly)(void *, size_t, size_t, bool dump, uint64_t freed_by);
} pool_class;

/* The pools seen so far. Only those with memory from malloc are changed. */
extern struct pool {
    _Atomic(void *) address;
    atomic_int kind;
} pools[8];
enum { NEW_POOL, HOST_POOL, OTHER_POOL };

/* When the release of the pool began that is under way (give_back.c); 0 without one. */
extern _Atomic int64_t release_us;

bool find_virtual_functions(void *framework);
bool patch_virtual_functions(bool refuses);
void restore_tensorflow(void);
