/* TensorFlow's calls to malloc. glibc's free() frees all these blocks, also when called by operator
 * delete. */
#include "decide.h"
#include "grants.h"
#include "patch.h"
#include "pool.h"
#include "process.h"
#include "refusal.h"

static struct {
    void *(*allocate)(size_t);
    void *(*aligned)(size_t, size_t);
    void *(*nothrow)(size_t, const void *);
    void *(*aligned_nothrow)(size_t, size_t, const void *);
} new_single, new_array;

/* A region of the pool is not noted, because most of it may stay unused; the tensor in it is. */
static void *note_own(void *block, size_t size)
{
    if (size >= NOTED_BYTES && self.pool_request == 0 &&
        atomic_load(&tensorflow_hooks) == REFUSES) {
        note_grant(block, size, false);
    }
    return block;
}

static void *tensorflow_malloc(size_t size)
{
    void *block;
    return ask(size, HEADER_BYTES, TENSORFLOW_MALLOC, &block) == GRANT
               ? note_own(malloc(size), size)
               : block;
}

static void *tensorflow_calloc(size_t count, size_t size)
{
    size_t total;
    void *block;
    if (__builtin_mul_overflow(count, size, &total) ||
        ask(total, HEADER_BYTES, UNCHECKED_ZEROED, &block) == GRANT) {
        return calloc(count, size);
    }
    return block;
}

static int tensorflow_posix_memalign(void **result, size_t alignment, size_t size)
{
    void *block;
    int saved = errno; /* this function returns its error code */
    enum answer answer = ask(size, alignment, TENSORFLOW_MALLOC, &block);
    errno = saved;
    if (answer == GRANT) {
        int failed = posix_memalign(result, alignment, size);
        if (!failed) {
            note_own(*result, size);
        }
        return failed;
    }
    if (block == NULL) {
        return ENOMEM;
    }
    *result = block;
    return 0;
}

static void *tensorflow_aligned_alloc(size_t alignment, size_t size)
{
    void *block;
    return ask(size, alignment, TENSORFLOW_MALLOC, &block) == GRANT
               ? note_own(aligned_alloc(alignment, size), size)
               : block;
}

/* operator new and its variants. Those without nothrow never return NULL: they throw, and no caller
 * catches it. */
#define OPERATOR_NEW(set)                                                                  \
    static void *set##_allocate(size_t size)                                               \
    {                                                                                      \
        void *block;                                                                       \
        return ask(size, HEADER_BYTES, UNCHECKED, &block) == GRANT                         \
                   ? note_own(set.allocate(size), size)                                    \
                   : block;                                                                \
    }                                                                                      \
    static void *set##_aligned(size_t size, size_t alignment)                              \
    {                                                                                      \
        void *block;                                                                       \
        return ask(size, alignment, UNCHECKED, &block) == GRANT                            \
                   ? note_own(set.aligned(size, alignment), size)                          \
                   : block;                                                                \
    }                                                                                      \
    static void *set##_nothrow(size_t size, const void *nothrow)                           \
    {                                                                                      \
        void *block;                                                                       \
        return ask(size, HEADER_BYTES, TENSORFLOW_MALLOC, &block) == GRANT                 \
                   ? note_own(set.nothrow(size, nothrow), size)                            \
                   : block;                                                                \
    }                                                                                      \
    static void *set##_aligned_nothrow(size_t size, size_t alignment, const void *nothrow) \
    {                                                                                      \
        void *block;                                                                       \
        return ask(size, alignment, TENSORFLOW_MALLOC, &block) == GRANT                    \
                   ? note_own(set.aligned_nothrow(size, alignment, nothrow), size)         \
                   : block;                                                                \
    }
OPERATOR_NEW(new_single)
OPERATOR_NEW(new_array)

static const struct import TENSORFLOW_IMPORTS[] = {
    /* The pool gets its regions by these three. */
    {"posix_memalign", (void *)tensorflow_posix_memalign, NULL},
    {"aligned_alloc", (void *)tensorflow_aligned_alloc, NULL},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", (void *)new_single_aligned_nothrow,
     (void **)&new_single.aligned_nothrow},
    {"malloc", (void *)tensorflow_malloc, NULL},
    {"calloc", (void *)tensorflow_calloc, NULL},
    {"_Znwm", (void *)new_single_allocate, (void **)&new_single.allocate},
    {"_ZnwmSt11align_val_t", (void *)new_single_aligned, (void **)&new_single.aligned},
    {"_ZnwmRKSt9nothrow_t", (void *)new_single_nothrow, (void **)&new_single.nothrow},
    {"_Znam", (void *)new_array_allocate, (void **)&new_array.allocate},
    {"_ZnamSt11align_val_t", (void *)new_array_aligned, (void **)&new_array.aligned},
    {"_ZnamRKSt9nothrow_t", (void *)new_array_nothrow, (void **)&new_array.nothrow},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", (void *)new_array_aligned_nothrow,
     (void **)&new_array.aligned_nothrow},
};

static bool is_tensorflow(const char *path)
{
    return strstr(path, "/libtensorflow_framework.so") != NULL ||
           strstr(path, "/libtensorflow_cc.so") != NULL;
}

/* Arms the gate in TensorFlow. `refuses`: 0 to only let its pool be released. Returns NULL, the
 * reason for a failure, or "" if it is not loaded. */
EXPORT const char *tfguard_arm_tensorflow(int refuses)
{
    enum { POOL_IMPORTS = 3 }; /* the first in the table */
    int wanted = refuses ? REFUSES : RELEASES;
    if (atomic_load(&tensorflow_hooks) == wanted) {
        return NULL;
    }
    void *framework = dlopen("libtensorflow_framework.so.2", RTLD_NOLOAD | RTLD_LAZY);
    if (framework == NULL) {
        return "";
    }
    bool is_known = (!refuses || find_allocate_ranges(framework)) &&
                    find_virtual_functions(framework);
    dlclose(framework);
    if (!is_known) {
        return "This version of TensorFlow is built in an unknown way.";
    }
    if (!is_glibc_malloc()) {
        return "Another memory allocator than glibc's is loaded.";
    }
    size_t imports = refuses ? LENGTH(TENSORFLOW_IMPORTS) : POOL_IMPORTS;
    struct import_job job = {PART_TENSORFLOW, TENSORFLOW_IMPORTS, imports, 0, NULL};
    patch_libraries(&job, is_tensorflow);
    if (job.problem == NULL && job.patched == 0) {
        job.problem = "This version of TensorFlow is built in an unknown way.";
    }
    if (job.problem == NULL && !patch_virtual_functions(refuses)) {
        job.problem = "The system does not let its pool be changed.";
    }
    if (job.problem != NULL) {
        restore_tensorflow();
        return job.problem;
    }
    atomic_store(&tensorflow_hooks, wanted);
    return NULL;
}
