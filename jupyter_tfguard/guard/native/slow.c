/*
 * Slowing native threads. Those that the cell has started fill on until the main thread has left
 * the cell and its memory is free: builders of trees, loops compiled without the GIL. Each is held
 * in a signal handler most of the time, never for long: it may hold a lock that the main thread
 * needs. Source of the fields: proc_pid_stat(5).
 */
#include "frames.h"
#include "memory.h"
#include "process.h"
#include "slow.h"
#include "watch.h"

#if defined(__x86_64__)
#define INTERRUPTED_AT(context) ((context)->gregs[REG_RIP])
#else
#define INTERRUPTED_AT(context) ((context)->pc)
#endif

static const int64_t SLOW_US = 5000000;                        /* at most, after a trip */
static const int64_t HELD_US = 90000, FREE_US = 1000;          /* in turns */
static const int64_t LOOK_AGAIN_US = 10000;                    /* for threads that run */

static int slow_signal;               /* 0 before the first trip, -1 if there is no free one */
_Atomic int64_t slow_until_us, held_until_us; /* the end of this turn; the handler waits for it */
static int64_t started_ticks;

static void *(*thread_state_of_python)(void); /* PyGILState_GetThisThreadState */
static struct range interpreter_code, lock_code;
static const char *fill_functions[3]; /* of the library that has lock_code as well */
enum { FILL_FUNCTION_BYTES = 4096 };  /* at most */

static bool is_in_range(const char *address, const struct range *range)
{
    return address >= range->start && address < range->end;
}

/* A thread of Python that is about to take or has just left the interpreter lock holds the mutex of
 * that lock: nobody else could take it. */
static bool may_be_held(const char *at)
{
    if (thread_state_of_python == NULL || thread_state_of_python() == NULL) {
        return true;
    }
    bool is_filling = false;
    for (size_t i = 0; i < LENGTH(fill_functions); i++) {
        is_filling |= at >= fill_functions[i] && at < fill_functions[i] + FILL_FUNCTION_BYTES;
    }
    bool may_hold_mutex = is_in_range(at, &interpreter_code) || is_in_range(at, &lock_code);
    return (is_filling || !may_hold_mutex) && !holds_interpreter_lock();
}

static void on_slow_signal(int number, siginfo_t *unused, void *context)
{
    (void)number, (void)unused;
    int saved = errno;
    const struct timespec pause = {0, 2000000};
    const mcontext_t *interrupted = &((const ucontext_t *)context)->uc_mcontext;
    bool is_native = may_be_held((const char *)INTERRUPTED_AT(interrupted));
    while (is_native && now_us() < atomic_load(&held_until_us)) {
        nanosleep(&pause, NULL);
    }
    errno = saved;
}

static struct range code_around(const void *function)
{
    struct address_query query = {.address = (uintptr_t)function};
    if (function == NULL || !find_mapping(holds_address, &query)) {
        return (struct range){NULL, NULL};
    }
    return (struct range){(const char *)query.found.start, (const char *)query.found.end};
}

/* Call before the first trip, from a thread that holds no lock. */
void find_python_locks(void)
{
    if (thread_state_of_python != NULL) {
        return;
    }
    *(void **)&thread_state_of_python = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    interpreter_code = code_around((void *)holds_interpreter_lock);
    lock_code = code_around(function_named("pthread_cond_timedwait"));
    static const char *const names[] = {"memcpy", "memmove", "memset"};
    for (size_t i = 0; i < LENGTH(names); i++) {
        fill_functions[i] = function_named(names[i]);
    }
}

/* The handler stays: a signal may arrive late, and without a handler it would end the process. */
static int find_slow_signal(void)
{
    for (int number = SIGRTMAX - 1; number > SIGRTMIN; number--) {
        struct sigaction found, ours = {.sa_sigaction = on_slow_signal,
                                        .sa_flags = SA_RESTART | SA_SIGINFO};
        if (number != stop_signal && sigaction(number, NULL, &found) == 0 &&
            found.sa_handler == SIG_DFL && sigaction(number, &ours, NULL) == 0) {
            return number;
        }
    }
    return -1;
}

static int64_t boot_ticks(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    int64_t each = sysconf(_SC_CLK_TCK);
    return (int64_t)now.tv_sec * each + now.tv_nsec / (1000000000 / each);
}

/* True for a thread that runs, and that began after the cell. */
static bool is_filling_thread(const char *id)
{
    char path[64], text[512], state;
    long long began;
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    if (got <= 0) {
        return false;
    }
    text[got] = 0;
    const char *end = strrchr(text, ')'); /* of the name, which may contain anything */
    return end != NULL && strstr(text, "(tfguard-") == NULL &&
           sscanf(end + 1,
                  " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lld",
                  &state, &began) == 2 &&
           (state == 'R' || state == 'D') && began >= started_ticks;
}

/* Returns the microseconds until the next call; 0 if there is nothing to slow. Holds state_lock. */
int64_t slow_threads(int64_t now)
{
    int64_t until = atomic_load(&slow_until_us);
    if (until == 0) {
        return 0;
    }
    if (now >= until ||
        tfguard_available() > RECOVERED_TIMES * larger(levels.stop_bytes, levels.stop_cap_bytes)) {
        atomic_store(&slow_until_us, 0);
        atomic_store(&held_until_us, 0);
        return 0;
    }
    int64_t held_until = atomic_load(&held_until_us);
    if (now >= held_until && now < held_until + FREE_US) {
        return held_until + FREE_US - now;
    }
    if (now >= held_until) {
        atomic_store(&held_until_us, held_until = now + HELD_US);
    }
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *one; threads != NULL && (one = readdir(threads)) != NULL;) {
        pid_t id = (pid_t)atoi(one->d_name);
        if (id > 0 && id != main_thread_id && is_filling_thread(one->d_name)) {
            syscall(SYS_tgkill, getpid(), id, slow_signal);
        }
    }
    if (threads != NULL) {
        closedir(threads);
    }
    return smaller(LOOK_AGAIN_US, larger(1, held_until - now_us()));
}

void start_slowing(int64_t now)
{
    if (slow_signal == 0) {
        slow_signal = find_slow_signal();
    }
    if (slow_signal > 0) {
        atomic_store(&slow_until_us, now + SLOW_US);
        atomic_store(&held_until_us, 0);
    }
}

void note_start_of_cell(void)
{
    if (atomic_load(&slow_until_us) == 0) { /* else those of the stopped cell still run */
        started_ticks = boot_ticks();
    }
}
