/*
 * CPython: the raw domain of its allocator, and arenas.
 *
 * Objects above 512 bytes come from the raw domain, smaller ones from arenas, or from the raw
 * domain if an arena cannot be allocated.
 *
 * A C call such as list(range(10**9)) may run for seconds without checking for signals. Refusing a
 * single small request raises MemoryError inside such a call. This is used if the main thread has
 * not reacted to the signal, or cannot because a call in another thread lasts. Source:
 * PyMemAllocatorEx and PyObjectArenaAllocator, Python's C API, "Memory Management".
 */
#include "decide.h"
#include "frames.h"
#include "grants.h"
#include "process.h"
#include "python.h"
#include "slow.h"
#include "watch.h"

struct python_allocator {
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
};

struct python_arenas {
    void *context;
    void *(*allocate)(void *, size_t);
    void (*free)(void *, void *, size_t);
};

enum { RAW_DOMAIN = 0 }; /* PYMEM_DOMAIN_RAW */

static struct python_allocator python;
static struct python_arenas arenas;
static void (*get_allocator)(int, struct python_allocator *),
    (*set_allocator)(int, struct python_allocator *);
static void (*get_arenas)(struct python_arenas *), (*set_arenas)(struct python_arenas *);

static bool must_interrupt(void)
{
    return __builtin_expect(atomic_load_explicit(&interrupt_wanted, memory_order_relaxed), 0) &&
           holds_interpreter_lock() && !self.inside;
}

/* True once per trip: this request must fail, which delivers the stop. In another thread it ends the
 * call that keeps the interpreter lock from the main thread. */
static bool interrupt(void)
{
    if (!must_interrupt()) {
        return false;
    }
    self.inside = true;
    bool may = runs_notebook_code();
    self.inside = false;
    if (!may || !atomic_exchange(&interrupt_wanted, false)) {
        return false;
    }
    atomic_fetch_add(&interrupted, 1);
    if (pthread_equal(pthread_self(), main_thread)) {
        tfguard_delivered();
    }
    errno = ENOMEM;
    return true;
}

static void *python_malloc(void *context, size_t size)
{
    void *block;
    if (interrupt()) {
        return NULL;
    }
    if (ask(size, HEADER_BYTES, PYTHON, &block) == GRANT) {
        block = python.malloc(context, size);
        note_grant(block, size, false);
    }
    return block;
}

static void *python_calloc(void *context, size_t count, size_t size)
{
    size_t total;
    void *block;
    if (interrupt()) {
        return NULL;
    }
    if (__builtin_mul_overflow(count, size, &total)) {
        return python.calloc(context, count, size);
    }
    if (ask(total, HEADER_BYTES, ZEROED, &block) == GRANT) {
        block = python.calloc(context, count, size);
        note_grant(block, total, true);
    }
    return block;
}

static void *python_realloc(void *context, void *block, size_t size)
{
    /* Shrinking a block must not fail: callers do not expect it. */
    if (__builtin_expect(atomic_load_explicit(&interrupt_wanted, memory_order_relaxed), 0) &&
        (block == NULL || size > malloc_usable_size(block)) && interrupt()) {
        return NULL;
    }
    return may_resize(block, size, PYTHON) ? python.realloc(context, block, size) : NULL;
}

static void *python_arena(void *context, size_t size)
{
    /* This does not use up the refusal: without an arena the object comes from python_malloc(). */
    return must_interrupt() ? NULL : arenas.allocate(context, size);
}

/* Arms the gate in CPython. Call with the GIL. Returns NULL, or the reason for a failure. */
EXPORT const char *tfguard_arm_python(void)
{
    *(void **)&get_allocator = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    *(void **)&set_allocator = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    *(void **)&get_arenas = dlsym(RTLD_DEFAULT, "PyObject_GetArenaAllocator");
    *(void **)&set_arenas = dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator");
    *(void **)&holds_interpreter_lock = dlsym(RTLD_DEFAULT, "PyGILState_Check");
    if (!get_allocator || !set_allocator || !get_arenas || !set_arenas || !holds_interpreter_lock) {
        return "This Python does not allow its allocators to be replaced.";
    }
    find_python_locks();
    struct python_allocator found;
    struct python_arenas found_arenas;
    get_allocator(RAW_DOMAIN, &found);
    get_arenas(&found_arenas);
    if (found.malloc == python_malloc) {
        return NULL;
    }
    /* tracemalloc and PYTHONMALLOC=debug wrap the allocator, and malloc_usable_size() must not be
     * called on their blocks. Both have a context; the plain allocator has none. */
    const void *library = object_of((void *)get_allocator);
    if (found.context != NULL || object_of((void *)found.malloc) != library ||
        object_of((void *)found.realloc) != library ||
        object_of((void *)found_arenas.allocate) != library) {
        return "Python's memory is traced or debugged by another tool.";
    }
    if (!is_whole_malloc()) {
        return "Python's memory does not come from a known allocator.";
    }
    python = found;
    arenas = found_arenas;
    struct python_allocator ours = {found.context, python_malloc, python_calloc, python_realloc,
                                    found.free};
    struct python_arenas our_arenas = {found_arenas.context, python_arena, found_arenas.free};
    set_allocator(RAW_DOMAIN, &ours);
    set_arenas(&our_arenas);
    return NULL;
}

/* Restores functions that are still ours. A tool that has started tracing since has wrapped them,
 * and continues to call them. */
void restore_python(void)
{
    struct python_allocator found;
    struct python_arenas found_arenas;
    if (python.malloc == NULL) {
        return;
    }
    get_allocator(RAW_DOMAIN, &found);
    get_arenas(&found_arenas);
    if (found.malloc == python_malloc) {
        set_allocator(RAW_DOMAIN, &python);
    }
    if (found_arenas.allocate == python_arena) {
        set_arenas(&arenas);
    }
}
