/*
 * NumPy: its default memory handler, in place.
 *
 * PyDataMem_SetHandler() sets a context variable, which does not affect other threads. So the
 * pointers in the default handler itself are replaced: all threads use it, and existing arrays stay
 * valid, because free() stays the same. Source: PyDataMem_Handler, numpy/ndarraytypes.h.
 */
#include "decide.h"
#include "frames.h"
#include "grants.h"
#include "patch.h"
#include "process.h"
#include "watch.h"

struct numpy_allocator {
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *, size_t);
};

struct numpy_handler {
    char name[127];
    uint8_t version;
    struct numpy_allocator allocator;
};

static struct numpy_allocator numpy;

static bool may_wait_for_use(size_t size)
{
    static const size_t WORTH_A_LOOK = 16 << 20; /* a look at the callers takes microseconds */
    if (size < WORTH_A_LOOK || self.inside || !atomic_load(&armed)) {
        return false;
    }
    int saved = errno;
    self.inside = true;
    bool may_wait = is_empty_of_user();
    self.inside = false;
    errno = saved;
    return may_wait;
}

static void *numpy_malloc(void *context, size_t size)
{
    void *block;
    if (ask(size, HEADER_BYTES, NUMPY, &block) == GRANT) {
        block = numpy.malloc(context, size);
        note_grant(block, size, may_wait_for_use(size));
    }
    return block;
}

static void *numpy_calloc(void *context, size_t count, size_t size)
{
    size_t total;
    void *block;
    if (__builtin_mul_overflow(count, size, &total)) {
        return numpy.calloc(context, count, size);
    }
    if (ask(total, HEADER_BYTES, ZEROED, &block) == GRANT) {
        block = numpy.calloc(context, count, size);
        note_grant(block, total, true);
    }
    return block;
}

static void *numpy_realloc(void *context, void *block, size_t size)
{
    return may_resize(block, size, NUMPY) ? numpy.realloc(context, block, size) : NULL;
}

/* True if the handler's blocks come from malloc: malloc_usable_size() may be called on them. */
static bool is_plain_numpy(const struct numpy_allocator *found)
{
    const size_t size = 1 << 20;
    void *block = found->malloc(found->context, size);
    if (block == NULL) {
        return false;
    }
    size_t usable = malloc_usable_size(block);
    found->free(found->context, block, size);
    return usable >= size && usable < size + 2 * page_bytes;
}

/* Arms the gate in NumPy's default handler. `empty`, `empty_like`: their C functions. `folder`: that
 * of the package, ends with a slash. Returns NULL, or the reason for a failure. */
EXPORT const char *tfguard_arm_numpy(void *handler, const void *empty, const void *empty_like,
                                     const char *folder)
{
    struct numpy_handler *found = handler;
    if (strncmp(found->name, "default_allocator", sizeof found->name) != 0 || found->version != 1) {
        return "NumPy has a memory handler that is not known.";
    }
    void **slots[] = {(void **)&found->allocator.malloc, (void **)&found->allocator.calloc,
                      (void **)&found->allocator.realloc};
    void *replacements[] = {(void *)numpy_malloc, (void *)numpy_calloc, (void *)numpy_realloc};
    if (*slots[0] == replacements[0] && *slots[1] == replacements[1] &&
        *slots[2] == replacements[2]) {
        return NULL;
    }
    const void *library = object_of(found);
    if (library == NULL || object_of((void *)found->allocator.free) != library) {
        return "NumPy's memory functions are not its own.";
    }
    for (size_t i = 0; i < LENGTH(slots); i++) {
        if (object_of(*slots[i]) != library) {
            return "NumPy's memory functions are not its own.";
        }
    }
    if (!is_whole_malloc() || !is_plain_numpy(&found->allocator)) {
        return "NumPy's memory does not come from malloc.";
    }
    numpy = found->allocator;
    know_empty(empty, empty_like, folder);
    for (size_t i = 0; i < LENGTH(slots); i++) {
        if (!patch(PART_NUMPY, slots[i], replacements[i])) {
            restore(PART_NUMPY, NULL);
            return "The system does not let NumPy's memory handler be changed.";
        }
    }
    return NULL;
}
