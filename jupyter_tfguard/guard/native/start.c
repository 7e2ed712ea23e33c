/* Start, stop, fork; what native.py reads. */
#include "disk.h"
#include "frames.h"
#include "give_back.h"
#include "grants.h"
#include "memory.h"
#include "patch.h"
#include "pool.h"
#include "python.h"
#include "slow.h"
#include "start.h"
#include "watch.h"

/* native.py checks this, and rejects a library of another version of the package. */
enum { INTERFACE_VERSION = 6 };

EXPORT int tfguard_interface_version(void)
{
    return INTERFACE_VERSION;
}

/* native.py declares the same fields. */
struct snapshot {
    int64_t tripped, delivered, trip_count, trip_available, trip_age_us, lowest_available;
    int64_t refused_numpy, refused_python, refused_pandas, refused_sklearn, refused_tensorflow;
    int64_t interrupted;
    int64_t last_refused, last_refused_available, spilled_bytes, spilled_count;
    int64_t trip_added;
    double fill_rate;
};

/* Refuse this thread nothing, and do not interrupt it: the guard itself needs memory to stop a
 * cell. Returns the earlier state: a signal may come while it is exempt already. */
EXPORT int tfguard_exempt(int is_exempt)
{
    bool was_exempt = self.inside;
    self.inside = is_exempt;
    return was_exempt;
}

EXPORT void tfguard_snapshot(struct snapshot *found)
{
    int64_t now = now_us(), tripped_at = atomic_load(&trip_us);
    if (pthread_equal(pthread_self(), main_thread)) {
        /* It runs Python code, so the signal suffices: python.c. */
        atomic_store(&heard_cpu_us, main_cpu_us());
        atomic_store(&heard, true);
    }
    int64_t lowest = atomic_load(&lowest_available);
    *found = (struct snapshot){
        .tripped = atomic_load(&tripped),
        .delivered = atomic_load(&delivered),
        .trip_count = atomic_load(&trip_count),
        .trip_available = atomic_load(&trip_available),
        .trip_age_us = tripped_at ? now - tripped_at : 0,
        .lowest_available = lowest == INT64_MAX ? 0 : lowest,
        .refused_numpy = atomic_load(&refused[NUMPY]),
        .refused_python = atomic_load(&refused[PYTHON]),
        .refused_pandas = atomic_load(&refused[PANDAS]),
        .refused_sklearn = atomic_load(&refused[SKLEARN]),
        .refused_tensorflow =
            atomic_load(&refused[TENSORFLOW_POOL]) + atomic_load(&refused[TENSORFLOW_MALLOC]),
        .interrupted = atomic_load(&interrupted),
        .last_refused = atomic_load(&last_refused),
        .last_refused_available = atomic_load(&last_refused_available),
        .spilled_bytes = atomic_load(&spilled_bytes),
        .spilled_count = atomic_load(&spilled_count),
        .trip_added = atomic_load(&trip_added),
        .fill_rate = atomic_load(&fill_rate),
    };
}

static void before_fork(void)
{
    pthread_mutex_lock(&disk_lock); /* the child needs a consistent table */
}

static void after_fork(void)
{
    pthread_mutex_unlock(&disk_lock);
}

static void in_child(void)
{
    atomic_store(&armed, false);
    atomic_store(&interrupt_wanted, false);
    atomic_store(&giving_back_us, 0);
    atomic_store(&slow_until_us, 0);
    atomic_store(&held_until_us, 0);
    is_running = false;
    disk_in_child();
    /* A thread that does not exist in the child may have held any of these. */
    state_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    groups_lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    grants_in_child();
    memset(&self, 0, sizeof self);
}

/* The new thread inherits the mask, so no signal handler of the program runs in it. Returns 0 or an
 * error number. */
int start_thread(pthread_t *thread, void *(*run)(void *), const char *name)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    int failed = pthread_create(thread, &small, run, NULL);
    pthread_attr_destroy(&small);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) { /* from here: the thread may start much later, and is known by its name */
        pthread_setname_np(*thread, name);
    }
    return failed;
}

/* Starts the thread that samples, disarmed. Call from the thread that must receive the signal. Returns 0
 * or an error number. */
EXPORT int tfguard_start(int signal_number)
{
    static bool is_prepared;
    if (is_running) {
        return EALREADY;
    }
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    stop_signal = signal_number;
    main_thread = pthread_self();
    main_thread_id = (pid_t)syscall(SYS_gettid);
    pthread_getcpuclockid(main_thread, &main_cpu_clock);
    if (!is_prepared) {
        void *frames[4];
        backtrace(frames,
                  LENGTH(frames)); /* the first call loads a library: not inside malloc */
        pthread_atfork(before_fork, after_fork, in_child);
        find_allocators();
        is_prepared = true;
    }
    return start_watching();
}

/* Stops the thread. The hooks stay in place, disarmed; tfguard_restore() removes them. */
EXPORT void tfguard_stop(void)
{
    tfguard_disarm();
    if (!is_running) {
        return;
    }
    end_watching();
    tfguard_use_groups(0, NULL, NULL);
}

/* Removes the hooks. Call with the GIL. Disk-backed blocks stay usable, and are freed like any
 * other block. */
EXPORT void tfguard_restore(void)
{
    tfguard_disarm();
    restore(PART_NUMPY, NULL);
    restore(PART_FOURIER, NULL);
    restore(PART_PANDAS, NULL);
    restore(PART_SKLEARN, NULL);
    restore_tensorflow();
    restore_python();
    atomic_store(&disk_armed, false);
}
