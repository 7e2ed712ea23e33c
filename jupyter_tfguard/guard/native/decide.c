/* The decision about a large request: grant it, refuse it, or place it on disk. */
#include "decide.h"
#include "disk.h"
#include "frames.h"
#include "grants.h"
#include "memory.h"
#include "refusal.h"
#include "slow.h"
#include "watch.h"

atomic_int tensorflow_hooks;

static const size_t CHEAP_BYTES =
    8 << 20; /* smaller requests use the newest sample while plenty is available */
static const int64_t CHEAP_US = 20000;
static const int64_t WAIT_US = 150000; /* other threads may free memory during the wait */
static const int64_t NO_WAIT_US =
    1000000; /* after a refusal: a loop of large requests must not become slow */
static const int64_t IGNORED_COUNT = 200; /* refusals in one cell */

static bool is_tensorflows(enum caller caller)
{
    return caller == TENSORFLOW_POOL || caller == TENSORFLOW_MALLOC || caller == UNCHECKED ||
           caller == UNCHECKED_ZEROED;
}

/* Native threads of a stopped cell are refused after its end, too: so they end. */
static bool is_checked(enum caller caller)
{
    return atomic_load(&armed) || (caller == SKLEARN && atomic_load(&slow_until_us) != 0);
}

static bool fits(size_t size)
{
    int64_t available = tfguard_available(), needed = (int64_t)size + atomic_load(&reserve_bytes);
    atomic_store(&known_available, available);
    atomic_store(&known_us, now_us());
    return available == INT64_MAX ||
           needed + promised_bytes(available - needed, ALL_GRANTS) <= available;
}

/* Memory is short only because this thread holds arrays that wait for their use: maybe for ever. */
static bool is_short_by_waiting_arrays(size_t size, enum caller caller)
{
    int64_t available = atomic_load(&known_available);
    int64_t needed = (int64_t)size + atomic_load(&reserve_bytes);
    return (caller == NUMPY || caller == PYTHON || caller == PANDAS) &&
           needed + promised_bytes(available - needed, ABOUT_TO_BE_FILLED) <= available;
}

/* TensorFlow writes to all the memory that it requests. If that exceeds the available memory, the
 * run would have been killed without the disk, and at the speed of the disk it takes minutes: stop
 * it. The reserve is not counted here: a run may use it. */
void stop_if_beyond(size_t size)
{
    int64_t available = tfguard_available();
    if (available != INT64_MAX &&
        (int64_t)size + promised_bytes(available - (int64_t)size, ALL_GRANTS) > available) {
        atomic_store(&last_refused, (int64_t)size);
        atomic_store(&last_refused_available, available);
        trip_now();
    }
}

static bool fits_by_far(size_t size)
{
    return size < CHEAP_BYTES && now_us() - atomic_load(&known_us) < CHEAP_US &&
           atomic_load(&known_available) > (int64_t)size + atomic_load(&plenty_bytes);
}

static enum answer refuse(size_t size, enum caller caller)
{
    int64_t count = atomic_fetch_add(&refused[caller], 1) + 1;
    atomic_store(&last_refused, (int64_t)size);
    atomic_store(&last_refused_available, atomic_load(&known_available));
    if (count % IGNORED_COUNT == 0) {
        trip_ignored();
    }
    /* After a trip this refusal is the stop: it causes a MemoryError, and a second exception must
     * not follow. Code that went on after the first stop may ignore every MemoryError. */
    if ((caller == NUMPY || caller == PYTHON) && pthread_equal(pthread_self(), main_thread) &&
        atomic_load(&tripped) && !atomic_load(&delivered) && atomic_load(&trip_count) == 1) {
        tfguard_delivered();
    }
    return REFUSE;
}

static enum answer disk_or_grant(void)
{
    if (atomic_load(&disk_armed)) {
        return ON_DISK;
    }
    trip_now();
    return GRANT;
}

/* Never refused, because a huge sparse array must work. */
static enum answer sparse(void)
{
    return atomic_load(&disk_armed) && !self.resizing ? SPARSE_ON_DISK : GRANT;
}

static enum answer not_refused(void)
{
    if (!self.resizing) {
        return disk_or_grant();
    }
    trip_now();
    return GRANT;
}

/* The answer if memory is short; pool.c explains why TensorFlow's entry points differ. */
static enum answer answer_short(size_t size, enum caller caller)
{
    switch (caller) {
    case NUMPY:
        if (is_empty_of_user()) {
            return sparse();
        }
        return runs_notebook_code() ? refuse(size, caller) : not_refused();
    case PYTHON: return runs_notebook_code() ? refuse(size, caller) : not_refused();
    case PANDAS:
    case SKLEARN: return refuse(size, caller);
    case TENSORFLOW_POOL: return caller_handles_refusal() ? refuse(size, caller) : disk_or_grant();
    case TENSORFLOW_MALLOC:
        if (caller_handles_refusal()) {
            self.pool_answer = REFUSED;
            return refuse(size, caller);
        }
        if (self.pool_request != 0 && atomic_load(&disk_armed)) {
            /* Place only the tensor on disk. The pool never releases its regions: one on disk would
             * slow down all later training. */
            self.pool_answer = WANTED_ON_DISK;
            return REFUSE;
        }
        return disk_or_grant();
    case ZEROED:
    case UNCHECKED_ZEROED: return sparse();
    default: return disk_or_grant();
    }
}

enum answer decide(size_t size, enum caller caller)
{
    static _Atomic int64_t last_short_us;
    if (fits_by_far(size) || fits(size)) {
        return GRANT;
    }
    /* The pool requests a larger region than it needs, and retries with nine tenths of it after a
     * refusal. */
    if (caller == TENSORFLOW_MALLOC && self.pool_request != 0 &&
        size / 10 * 9 > self.pool_request + 65536) {
        self.pool_answer = TOO_LARGE;
        return REFUSE;
    }
    int64_t now = now_us();
    if (is_short_by_waiting_arrays(size, caller)) {
        return sparse();
    }
    bool is_hopeless = (int64_t)size > atomic_load(&limit_bytes);
    bool is_main = pthread_equal(pthread_self(), main_thread);
    bool delays_stop = !is_main && atomic_load(&tripped) && !atomic_load(&delivered);
    if (!is_hopeless && !delays_stop && now - atomic_load(&last_short_us) > NO_WAIT_US) {
        struct timespec pause = {0, is_main ? 4000000 : 8000000};
        for (int64_t end = now + WAIT_US; now_us() < end;) {
            nanosleep(&pause, NULL);
            if (!is_checked(caller) || fits(size)) {
                return GRANT;
            }
        }
    }
    atomic_store(&last_short_us, now_us());
    return answer_short(size, caller);
}

/* The main thread needs the interpreter lock for its exception, and threads that hold it in turns
 * may fill the rest of the memory before. */
static bool counts_while_stopping(size_t size, enum caller caller)
{
    return size >= MEDIUM_BYTES && (caller == PYTHON || caller == NUMPY) &&
           atomic_load_explicit(&tripped, memory_order_relaxed) &&
           !pthread_equal(pthread_self(), main_thread);
}

/* Checks a request for a new block. GRANT: allocate it, then call note_grant(). Otherwise *block is
 * the result, NULL for a refusal. */
enum answer ask(size_t size, size_t alignment, enum caller caller, void **block)
{
    *block = NULL;
    if (size < LARGE_BYTES && !counts_while_stopping(size, caller)) {
        return GRANT;
    }
    if (self.releasing_pool) {
        errno = ENOMEM;
        return REFUSE;
    }
    if (!is_checked(caller) || self.inside || size > HUGE_BYTES ||
        (is_tensorflows(caller) && atomic_load(&tensorflow_hooks) != REFUSES)) {
        return GRANT;
    }
    int saved = errno;
    self.inside = true;
    enum answer answer = decide(size, caller);
    if (answer == ON_DISK) {
        stop_if_beyond(size);
    }
    if (answer == ON_DISK || answer == SPARSE_ON_DISK) {
        *block = disk_allocate(size, alignment);
        if (*block == NULL) {
            if (answer == ON_DISK) {
                trip_now();
            }
            answer = GRANT;
        }
    }
    self.inside = false;
    errno = answer == REFUSE ? ENOMEM : saved;
    return answer;
}

/* The same for a block that realloc() is about to resize. True: call the original realloc(). */
bool may_resize(void *block, size_t size, enum caller caller)
{
    void *unused;
    if (size < LARGE_BYTES) {
        return true;
    }
    size_t held = block == NULL ? 0 : malloc_usable_size(block);
    if (size <= held) {
        return true;
    }
    switch (grow_on_disk(block, size)) {
    case HAS_ROOM: return true;
    case NO_ROOM: errno = ENOMEM; return false;
    case NOT_ON_DISK: break;
    }
    if (!is_checked(caller) || self.inside) {
        return true;
    }
    /* A list grows by an eighth, so the growth may be small: check at least LARGE_BYTES. */
    size_t growth = size - held;
    self.resizing = true;
    enum answer answer =
        ask(growth > LARGE_BYTES ? growth : LARGE_BYTES, HEADER_BYTES, caller, &unused);
    self.resizing = false;
    return answer == GRANT;
}
