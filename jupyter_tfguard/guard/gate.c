/*
 * The native part of the guard: a sampler thread that needs no GIL, and a gate that checks large
 * allocations.
 *
 * Plain C11 for Linux with glibc, x86-64 and aarch64. Uses no headers of Python, NumPy or
 * TensorFlow: everything to patch is found and checked at run time. native.py loads the library
 * with ctypes; it is never unloaded.
 *
 * Sections, in order:
 *   1. Basics                clock, state of one thread, the lines of /proc/self/maps
 *   2. Available memory      of the memory groups and of the machine
 *   3. State and sampler     arm, trip, signal; the thread sleeps while no cell runs
 *   4. Granted, not touched  granted memory that no counter includes yet
 *   5. Disk-backed blocks    their pages are file cache; glibc's free() releases them
 *   6. The caller            a stack walk: does this caller handle a refusal?
 *   7. The decision          grant, refuse or place on disk
 *   8. Patching              replace pointers, record them and restore them
 *   9. NumPy                 its default memory handler
 *  10. CPython               its raw allocator and its arenas
 *  11. TensorFlow            its pool (a vtable) and its calls to malloc (GOT slots);
 *                            pandas' parser; the trees of scikit-learn
 *  12. Giving back           free memory of malloc and of TensorFlow's pool to the system
 *  13. Start, stop, fork
 *
 * While disarmed (no cell runs, the guard is paused, an error is being printed) each hook only
 * calls the original function. A forked child has no sampler thread, so its gate stays disarmed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)
#if defined(__x86_64__)
#define INTERRUPTED_AT(context) ((context)->gregs[REG_RIP])
#else
#define INTERRUPTED_AT(context) ((context)->pc)
#endif

/* native.py checks this, and rejects a library of another version of the package. */
#define INTERFACE_VERSION 5

/* The gate never checks smaller requests: the sampler covers them. Of other threads than the main
 * one it checks those of MEDIUM_BYTES as well while a cell is being stopped. */
static const size_t LARGE_BYTES = 1 << 20, MEDIUM_BYTES = 64 << 10;
/* Larger requests fail anyway: they exceed the address space. */
static const size_t HUGE_BYTES = (size_t)1 << 47;

/* ---------------------------------------------------------------------------------------------
 * 1. Basics
 */

static size_t page_bytes = 4096; /* set at start: 64 KiB on some aarch64 systems */

/* State of one thread. Read only for large requests: access may call __tls_get_addr. */
static __thread struct {
    bool inside;         /* in the gate itself, whose allocations are not checked */
    bool resizing;       /* a block that realloc() is about to resize: it cannot move to disk */
    bool releasing_pool; /* section 12: the pool must not grow */
    size_t pool_request; /* bytes requested from TensorFlow's pool while its code runs; 0: none */
    enum { NOT_REFUSED, TOO_LARGE, REFUSED, WANTED_ON_DISK } pool_answer;
} self;

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) & ~(unit - 1);
}

struct mapping {
    uintptr_t start, end;
    int protection;
    bool is_private;
    unsigned long inode;
    const char *name; /* "" for anonymous memory */
};

/* 7f5c4a000000-7f5c4a021000 rw-p 00000000 00:00 0       /tmp/name (deleted) */
static bool parse_mapping(const char *line, struct mapping *found)
{
    char flags[5];
    int name_at = 0;
    if (sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu %n", &found->start, &found->end, flags,
               &found->inode, &name_at) < 4) {
        return false;
    }
    found->protection = (flags[0] == 'r' ? PROT_READ : 0) | (flags[1] == 'w' ? PROT_WRITE : 0) |
                        (flags[2] == 'x' ? PROT_EXEC : 0);
    found->is_private = flags[3] == 'p';
    found->name = line + name_at;
    return true;
}

/* Calls visit for each mapping of this process until it returns true. Allocates nothing: it also
 * runs inside malloc. */
static bool find_mapping(bool (*visit)(const struct mapping *, void *), void *argument)
{
    char buffer[PATH_MAX + 512];
    size_t held = 0;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    for (;;) {
        ssize_t got = read(fd, buffer + held, sizeof buffer - 1 - held);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        held += (size_t)got;
        buffer[held] = 0;
        char *line = buffer, *end;
        while (!found && (end = strchr(line, '\n')) != NULL) {
            struct mapping mapping;
            *end = 0;
            found = parse_mapping(line, &mapping) && visit(&mapping, argument);
            line = end + 1;
        }
        held -= (size_t)(line - buffer);
        memmove(buffer, line, held);
        if (found || held == sizeof buffer - 1) {
            break;
        }
    }
    close(fd);
    return found;
}

struct range {
    const char *start, *end;
};

struct address_query {
    uintptr_t address;
    struct mapping found;
};

static bool holds_address(const struct mapping *mapping, void *argument)
{
    struct address_query *query = argument;
    if (query->address < mapping->start || query->address >= mapping->end) {
        return false;
    }
    query->found = *mapping;
    query->found.name =
        mapping->name[0] ? "named" : ""; /* the text is invalid after the visit */
    return true;
}

/* ---------------------------------------------------------------------------------------------
 * 2. Available memory: the minimum over the machine and each limited group
 *
 * File cache and swap count as available: the system uses both before it kills.
 * collectors/available.py does the same in Python.
 */

/* Also stores the inode: user code may close all descriptors (daemonize), and the descriptor number
 * may then be reused for another file. */
struct kept_file {
    int fd;
    ino_t inode;
};

struct group {
    int version;
    struct kept_file limit, used, stat, swap_limit, swap_used;
};

static struct group groups[16];
static int group_count;
static struct kept_file meminfo = {-1, 0};
static pthread_rwlock_t groups_lock = PTHREAD_RWLOCK_INITIALIZER;

static const int64_t NO_LIMIT = (int64_t)1 << 62;

static struct kept_file keep_file(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat about;
    struct kept_file file = {-1, 0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (file.fd >= 0 && fstat(file.fd, &about) == 0) {
        file.inode = about.st_ino;
    }
    return file;
}

static bool is_kept(struct kept_file file)
{
    struct stat about;
    return file.fd >= 0 && fstat(file.fd, &about) == 0 && about.st_ino == file.inode;
}

static void drop_file(struct kept_file *file)
{
    if (is_kept(*file)) {
        close(file->fd);
    }
    file->fd = -1;
}

static bool read_file(struct kept_file file, char *text, size_t size)
{
    ssize_t got = is_kept(file) ? pread(file.fd, text, size - 1, 0) : -1;
    if (got <= 0) {
        return false;
    }
    text[got] = 0;
    return true;
}

/* The number in a file; NO_LIMIT for "max"; -1 if unreadable. */
static int64_t read_number(struct kept_file file)
{
    char text[64];
    if (!read_file(file, text, sizeof text)) {
        return -1;
    }
    if (strncmp(text, "max", 3) == 0) {
        return NO_LIMIT;
    }
    int64_t number = strtoll(text, NULL, 10);
    return number > NO_LIMIT ? NO_LIMIT : number;
}

/* "inactive_file 4096" or "MemAvailable:  123 kB": the number after a name at the start of a line;
 * -1 if there is no such line. */
static int64_t field(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, name)) != NULL; at += length) {
        if ((at == text || at[-1] == '\n') && (at[length] == ' ' || at[length] == ':')) {
            return strtoll(at + length + 1, NULL, 10);
        }
    }
    return -1;
}

static int64_t at_least_0(int64_t number)
{
    return number < 0 ? 0 : number;
}

static int64_t smaller(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

static int64_t larger(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static int64_t group_available(const struct group *group, int64_t free_swap)
{
    char text[8192];
    int64_t limit = read_number(group->limit), used = read_number(group->used);
    if (limit < 0 || used < 0 || limit == NO_LIMIT) {
        return INT64_MAX;
    }
    int64_t cache = 0;
    if (read_file(group->stat, text, sizeof text)) {
        bool first = group->version == 1;
        int64_t held = at_least_0(field(text, first ? "total_rss" : "anon")) +
                       at_least_0(field(text, first ? "total_shmem" : "shmem"));
        cache = at_least_0(field(text, first ? "total_active_file" : "active_file")) +
                at_least_0(field(text, first ? "total_inactive_file" : "inactive_file"));
        /* The counters include a deleted file for a while; the memory in use does not. */
        cache = at_least_0(smaller(cache, used - held));
    }
    int64_t left = limit - used + cache;
    int64_t swap_limit = free_swap ? read_number(group->swap_limit) : -1;
    if (swap_limit < 0) {
        return left;
    }
    int64_t swap_used = at_least_0(read_number(group->swap_used));
    if (group->version == 1) { /* version 1 counts both together */
        int64_t both = swap_limit == NO_LIMIT ? NO_LIMIT : swap_limit - swap_used + cache;
        return larger(left, smaller(left + free_swap, both));
    }
    int64_t allowed = swap_limit == NO_LIMIT ? NO_LIMIT : swap_limit - swap_used;
    return left + at_least_0(smaller(free_swap, allowed));
}

/* Bytes that can still be used before the system kills a process; INT64_MAX if unknown. */
static int64_t read_available(void)
{
    char text[2048];
    int64_t available = INT64_MAX, free_swap = 0;
    int saved = errno;
    pthread_rwlock_rdlock(&groups_lock);
    if (read_file(meminfo, text, sizeof text)) {
        int64_t machine = field(text, "MemAvailable");
        free_swap = at_least_0(field(text, "SwapFree")) * KIB;
        if (machine >= 0) {
            available = machine * KIB + free_swap;
        }
    }
    for (int i = 0; i < group_count; i++) {
        available = smaller(available, group_available(&groups[i], free_swap));
    }
    pthread_rwlock_unlock(&groups_lock);
    errno = saved;
    return available;
}

/* The smallest limit; INT64_MAX if unknown. */
static int64_t read_total(void)
{
    char text[2048];
    int64_t total = INT64_MAX;
    pthread_rwlock_rdlock(&groups_lock);
    if (read_file(meminfo, text, sizeof text)) {
        int64_t machine = field(text, "MemTotal");
        total = machine >= 0 ? machine * KIB : total;
    }
    for (int i = 0; i < group_count; i++) {
        int64_t limit = read_number(groups[i].limit);
        total = limit >= 0 ? smaller(total, limit) : total;
    }
    pthread_rwlock_unlock(&groups_lock);
    return total;
}

static void drop_groups(void)
{
    for (int i = 0; i < group_count; i++) {
        struct group *group = &groups[i];
        struct kept_file *files[] = {&group->limit, &group->used, &group->stat, &group->swap_limit,
                                     &group->swap_used};
        for (size_t k = 0; k < LENGTH(files); k++) {
            drop_file(files[k]);
        }
    }
    group_count = 0;
}

/* Read these groups from now on. Call while disarmed. */
EXPORT void tfguard_use_groups(int count, const int *versions, const char *const *folders)
{
    pthread_rwlock_wrlock(&groups_lock);
    drop_groups();
    if (!is_kept(meminfo)) {
        meminfo = keep_file("/proc", "meminfo");
    }
    for (int i = 0; i < count && group_count < (int)LENGTH(groups); i++) {
        bool first = versions[i] == 1;
        groups[group_count++] = (struct group){
            .version = versions[i],
            .limit = keep_file(folders[i], first ? "memory.limit_in_bytes" : "memory.max"),
            .used = keep_file(folders[i], first ? "memory.usage_in_bytes" : "memory.current"),
            .stat = keep_file(folders[i], "memory.stat"),
            .swap_limit =
                keep_file(folders[i], first ? "memory.memsw.limit_in_bytes" : "memory.swap.max"),
            .swap_used = keep_file(folders[i],
                                   first ? "memory.memsw.usage_in_bytes" : "memory.swap.current"),
        };
    }
    pthread_rwlock_unlock(&groups_lock);
}

/* Memory that a process and its children use and that is no file, in bytes; 0 if unknown. A page
 * that a child shares with its parent counts twice. Source: proc_pid_status(5), proc_pid_task(5).
 *
 *     most        children that may still be read
 *     generations below this process */
static int64_t used_by(const char *folder, int *most, int generations)
{
    char text[4096], path[PATH_MAX];
    int64_t sum = 0;
    struct kept_file status = keep_file(folder, "status");
    if (read_file(status, text, sizeof text)) {
        sum = KIB * (at_least_0(field(text, "RssAnon")) + at_least_0(field(text, "RssShmem")) +
                     at_least_0(field(text, "VmSwap")));
    }
    drop_file(&status);
    snprintf(path, sizeof path, "%s/task", folder);
    DIR *threads = generations > 0 ? opendir(path) : NULL;
    for (struct dirent *thread; threads != NULL && (thread = readdir(threads)) != NULL;) {
        snprintf(path, sizeof path, "%s/task/%s", folder, thread->d_name);
        struct kept_file children = keep_file(path, "children");
        char *at = text, *end = text;
        bool is_read = read_file(children, text, sizeof text);
        for (; is_read && *most > 0; at = end) {
            long pid = strtol(at, &end, 10);
            if (end == at) {
                break;
            }
            char child[32];
            snprintf(child, sizeof child, "/proc/%ld", pid);
            (*most)--;
            sum += used_by(child, most, generations - 1);
        }
        drop_file(&children);
    }
    if (threads != NULL) {
        closedir(threads);
    }
    return sum;
}

EXPORT int64_t tfguard_available(void)
{
    return read_available();
}

EXPORT int64_t tfguard_total(void)
{
    return read_total();
}

/* ---------------------------------------------------------------------------------------------
 * 3. State and sampler thread
 */

struct levels { /* levels.py */
    int64_t stop_bytes, stop_cap_bytes, reserve_bytes, total_bytes;
    double rate_seconds, own_fraction;
};

/* Who requests memory; section 7 decides by it. */
enum caller {
    NUMPY,
    PYTHON,
    PANDAS,
    SKLEARN,
    TENSORFLOW_POOL,
    TENSORFLOW_MALLOC,
    UNCHECKED, /* returning NULL to it would end the process */
    UNCHECKED_ZEROED,
    ZEROED, /* calloc of NumPy or CPython */
    CALLER_COUNT
};

static const int64_t SHORTEST_US = 1000, LONGEST_US = 50000, NEAR_LONGEST_US = 10000,
                     UNDELIVERED_US = 2000;
static const int64_t SIGNAL_AGAIN_US = 10000;    /* between two signals to the main thread */
static const int64_t INTERRUPT_AFTER_US = 60000; /* CPU time without a reaction: section 10 */
static const int64_t FALLEN_AFTER_US =
    10000; /* user code caught the exception and continues to fill: */
static const double FALLEN_FRACTION =
    0.25; /*   stop it again after a fall by this fraction of the level */
static const int64_t RECOVERED_TIMES =
    4; /* of the level: the stop is over, the cell uses less memory now */
static const int PRIORITY = -10; /* of the sampler thread */
static const int MOST_CHILDREN = 64, GENERATIONS = 8;
static const int64_t ADDED_AGAIN_US = 50000, STEADY_ADDED_AGAIN_US = 1000000;
static const double STEADY_FRACTION = 1.0 / 16; /* of the level: a smaller fall is none */
static const double SAMPLES_AHEAD = 6; /* until the level is reached, at the current fill rate */

static atomic_bool armed; /* a cell runs and may be stopped; each hook tests only this */
static atomic_bool tripped, delivered;
static atomic_bool interrupt_wanted; /* section 10 */
static atomic_bool heard;            /* by the main thread, since the trip */
static atomic_int trip_count;
static _Atomic int64_t trip_available, trip_us, delivered_us, heard_cpu_us;
static _Atomic int64_t judged_available, delivered_available; /* minus bytes on disk */
static _Atomic int64_t last_available, last_sample_us, lowest_available;
static _Atomic double fill_rate; /* bytes per second */
static _Atomic int64_t refused[CALLER_COUNT], interrupted, last_refused, last_refused_available;
static _Atomic int64_t spilled_bytes, spilled_count;

static struct levels levels; /* for the sampler; the gate also reads: */
static _Atomic int64_t reserve_bytes, limit_bytes, plenty_bytes;
/* The newest reading, by the sampler or the gate. */
static _Atomic int64_t known_available, known_us;

static int wake_fd = -1, stop_signal;
static pid_t main_thread_id;
static pthread_t main_thread;
static clockid_t main_cpu_clock;

static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER; /* protects arming and tripping */
static pthread_cond_t state_changed;
static bool ended;
static bool is_running; /* the sampler thread, in this process */
static pthread_t sampler_thread;

static int64_t disk_bytes_written(void);
static bool start_giving_back(int64_t available, double level, int64_t now); /* section 12 */
static bool is_giving_back(int64_t now);
static void note_available(int64_t available);
static int64_t disk_bytes_at_start; /* of the cell */
static int64_t signal_us;
static int64_t start_available, start_own; /* at the first sample of the cell */
static int64_t added, added_us;            /* by this process since then; when that was read */
static int64_t added_available;            /* at that time */
static _Atomic int64_t trip_added;

/* Takes up to a millisecond, so it is read ahead of a trip. Holds state_lock. */
static void read_added(int64_t available, int64_t now)
{
    int most = MOST_CHILDREN;
    added = used_by("/proc/self", &most, GENERATIONS) - start_own;
    added_us = now;
    added_available = available;
}

/* A run at a plateau near the limit must not pay for it. */
static bool is_added_outdated(int64_t available, int64_t now)
{
    double fallen = (double)(added_available - available);
    bool is_steady = fallen < STEADY_FRACTION * (double)levels.stop_bytes;
    return now - added_us > (is_steady ? STEADY_ADDED_AGAIN_US : ADDED_AGAIN_US);
}

/* False if other processes fill the memory: the killer takes the largest, and this cell may
 * survive. */
static bool is_own_fill(int64_t available)
{
    return (double)added >= levels.own_fraction * (double)(start_available - available);
}

static void send_signal(int64_t now)
{
    signal_us = now;
    /* Not kill(), which could signal another thread: the Python handler runs only in the main one.
     */
    syscall(SYS_tgkill, getpid(), main_thread_id, stop_signal);
}

/* CPU time of the main thread. */
static int64_t main_cpu_us(void)
{
    struct timespec used = {0, 0};
    clock_gettime(main_cpu_clock, &used);
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

/* --- Slowing native threads. Those that the cell has started fill on until the main thread has left
 * the cell and its memory is free: builders of trees, loops compiled without the GIL. Each is held
 * in a signal handler most of the time, never for long: it may hold a lock that the main thread
 * needs. Source of the fields: proc_pid_stat(5). */

static const int64_t SLOW_US = 5000000;                        /* at most, after a trip */
static const int64_t HELD_US = 90000, FREE_US = 1000;          /* in turns */
static const int64_t LOOK_AGAIN_US = 10000;                    /* for threads that run */

static int slow_signal;               /* 0 before the first trip, -1 if there is no free one */
static _Atomic int64_t slow_until_us; /* 0: not now */
static _Atomic int64_t held_until_us; /* the end of this turn; the handler waits for it */
static int64_t started_ticks;
static int (*holds_interpreter_lock)(void);  /* PyGILState_Check */
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

static void *function_named(const char *name); /* section 5 */

/* Call before the first trip, from a thread that holds no lock. */
static void find_python_locks(void)
{
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
static int64_t slow_threads(int64_t now)
{
    int64_t until = atomic_load(&slow_until_us);
    if (until == 0) {
        return 0;
    }
    if (now >= until ||
        read_available() > RECOVERED_TIMES * larger(levels.stop_bytes, levels.stop_cap_bytes)) {
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

static void start_slowing(int64_t now)
{
    if (slow_signal == 0) {
        slow_signal = find_slow_signal();
    }
    if (slow_signal > 0) {
        atomic_store(&slow_until_us, now + SLOW_US);
        atomic_store(&held_until_us, 0);
    }
}

/* Holds state_lock. */
static void trip(int64_t available, int64_t now)
{
    start_slowing(now);
    slow_threads(now);
    atomic_store(&trip_available, available);
    atomic_store(&heard_cpu_us, main_cpu_us());
    atomic_store(&heard, false);
    atomic_store(&trip_us, now);
    atomic_store(&delivered, false);
    atomic_store(&interrupt_wanted, false);
    atomic_fetch_add(&trip_count, 1);
    atomic_store(&tripped, true);
    if (wake_fd >= 0) {
        ssize_t ignored = write(wake_fd, "s", 1); /* a full pipe has already woken its reader */
        (void)ignored;
    }
    atomic_store(&trip_added, added);
    send_signal(now);
    read_added(available, now); /* for the message, if the main thread takes longer */
    atomic_store(&trip_added, added);
}

/* Trip because memory was granted that is not available. From any thread. */
static void trip_now(void)
{
    pthread_mutex_lock(&state_lock);
    if (atomic_load(&armed) && !atomic_load(&tripped)) {
        trip(read_available(), now_us());
    }
    pthread_mutex_unlock(&state_lock);
}

/* Trip because code ignores refusals, and would go on without end. Two trips are counted: the next
 * refusal must not count as the stop. */
static void trip_ignored(void)
{
    pthread_mutex_lock(&state_lock);
    if (atomic_load(&armed) && (!atomic_load(&tripped) || atomic_load(&delivered))) {
        if (atomic_load(&trip_count) == 0) {
            atomic_store(&trip_count, 1);
        }
        trip(read_available(), now_us());
    }
    pthread_mutex_unlock(&state_lock);
}

static double level_at(double rate)
{
    double ahead = rate > 0 ? rate * levels.rate_seconds : 0;
    double level = ahead < (double)levels.stop_cap_bytes ? ahead : (double)levels.stop_cap_bytes;
    return level > (double)levels.stop_bytes ? level : (double)levels.stop_bytes;
}

/* True while free memory of allocators is being given back, which may make the stop needless. Not
 * if the rest of the memory would be full before. */
static bool may_come_free(int64_t available, double level, int64_t now)
{
    double ahead = larger(0, (int64_t)(atomic_load(&fill_rate) * levels.rate_seconds));
    return (double)available > level / 2 + ahead &&
           (is_giving_back(now) || start_giving_back(available, level, now));
}

/* Holds state_lock, armed. */
static void judge(int64_t available, double level, int64_t now)
{
    atomic_store(&judged_available, available);
    if (atomic_load(&delivered) && available > RECOVERED_TIMES * (int64_t)level) {
        atomic_store(&tripped, false);
        atomic_store(&delivered, false);
        atomic_store(&trip_count, 0);
    }
    if (!atomic_load(&tripped)) {
        if (available < (int64_t)level && is_own_fill(available) &&
            !may_come_free(available, level, now)) {
            trip(available, now);
        }
    } else if (!atomic_load(&delivered)) {
        if (now - signal_us >= SIGNAL_AGAIN_US) {
            send_signal(now);
        }
        /* The main thread reacts to a signal within milliseconds, unless it is in a long C call.
         * Only its own CPU time counts: on a busy machine it may get none for a while. */
        int64_t unheard_us = main_cpu_us() - atomic_load(&heard_cpu_us);
        bool is_urgent = !atomic_load(&heard) && available < atomic_load(&trip_available) / 2;
        if (unheard_us > INTERRUPT_AFTER_US || is_urgent) {
            atomic_store(&interrupt_wanted, true);
        }
    } else if (now - atomic_load(&delivered_us) > FALLEN_AFTER_US &&
               (double)available <
                   (double)atomic_load(&delivered_available) - FALLEN_FRACTION * level) {
        trip(available, now);
    }
}

/* Bytes per second from two samples. Rises at once and falls slowly, because memory fills in
 * bursts. */
static double smooth_rate(double rate, int64_t fallen, int64_t elapsed_us)
{
    double seen = (double)fallen / ((double)elapsed_us * 1e-6);
    if (seen <= rate) {
        return rate * 0.7 + seen * 0.3;
    }
    return elapsed_us > 20000 ? seen : (rate + seen) / 2; /* far apart: already a mean */
}

static bool is_near(int64_t available)
{
    return available < 6 * levels.stop_cap_bytes;
}

static int64_t next_pause_us(int64_t available, double level, double rate)
{
    int64_t pause = LONGEST_US;
    if (rate > 1e6) {
        double ahead_us = ((double)available - level) / rate * 1e6 / SAMPLES_AHEAD;
        pause = ahead_us < (double)LONGEST_US ? larger(SHORTEST_US, (int64_t)ahead_us) : LONGEST_US;
    }
    if (is_near(available)) {
        pause = smaller(pause, NEAR_LONGEST_US);
    }
    if (atomic_load(&tripped) && !atomic_load(&delivered)) {
        pause = smaller(pause, UNDELIVERED_US);
    }
    return pause;
}

/* Holds state_lock, armed. Returns the microseconds until the next sample. */
static int64_t take_sample(void)
{
    int64_t available = read_available(), now = now_us(), before = atomic_load(&last_sample_us);
    if (available == INT64_MAX) {
        return LONGEST_US;
    }
    double rate = atomic_load(&fill_rate);
    if (before == 0) {
        start_available = available;
        /* Looking for children takes too long; those that exist count as added. */
        start_own = used_by("/proc/self", NULL, 0);
        added_us = 0;
    }
    if (is_near(available) && is_added_outdated(available, now)) {
        read_added(available, now);
    }
    if (before != 0 && now > before) {
        rate = smooth_rate(rate, atomic_load(&last_available) - available, now - before);
        atomic_store(&fill_rate, rate);
    }
    atomic_store(&last_available, available);
    atomic_store(&last_sample_us, now);
    atomic_store(&known_available, available);
    atomic_store(&known_us, now);
    if (available < atomic_load(&lowest_available)) {
        atomic_store(&lowest_available, available);
    }
    /* Pages on disk never cause a kill, but a run that continues at the speed of the disk must be
     * stopped too: beyond a tenth of the limit they count as used. */
    int64_t on_disk = disk_bytes_written() - disk_bytes_at_start - levels.total_bytes / 10;
    double level = level_at(rate);
    note_available(available);
    judge(available - at_least_0(on_disk), level, now);
    return next_pause_us(available, level, rate);
}

static void *run_sampler(void *unused)
{
    (void)unused;
    /* So that it gets a CPU at once on a busy machine. Only for this thread; fails without
     * permission. */
    setpriority(PRIO_PROCESS, 0, PRIORITY);
    pthread_mutex_lock(&state_lock);
    while (!ended) {
        int64_t slow_us = slow_threads(now_us());
        if (!atomic_load(&armed) && slow_us == 0) {
            pthread_cond_wait(&state_changed, &state_lock);
            continue;
        }
        int64_t until_us = atomic_load(&armed) ? take_sample() : LONGEST_US;
        until_us = slow_us != 0 ? smaller(until_us, slow_us) : until_us;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until_us += until.tv_nsec / 1000;
        until.tv_sec += until_us / 1000000;
        until.tv_nsec = until_us % 1000000 * 1000;
        /* Woken early only by arm, disarm and stop. */
        pthread_cond_timedwait(&state_changed, &state_lock, &until);
    }
    pthread_mutex_unlock(&state_lock);
    return NULL;
}

/* Arm for a new cell; resets an earlier trip. */
EXPORT void tfguard_arm(const struct levels *for_cell)
{
    pthread_mutex_lock(&state_lock);
    levels = *for_cell;
    atomic_store(&reserve_bytes, levels.reserve_bytes);
    atomic_store(&limit_bytes, levels.total_bytes);
    atomic_store(&plenty_bytes, 4 * levels.stop_cap_bytes + levels.reserve_bytes);
    atomic_store(&known_us, 0);
    if (atomic_load(&slow_until_us) == 0) { /* else those of the stopped cell still run */
        started_ticks = boot_ticks();
    }
    atomic_store(&tripped, false);
    atomic_store(&delivered, false);
    atomic_store(&interrupt_wanted, false);
    atomic_store(&trip_count, 0);
    atomic_store(&trip_us, 0);
    atomic_store(&trip_available, 0);
    atomic_store(&last_available, INT64_MAX);
    atomic_store(&last_sample_us, 0);
    atomic_store(&lowest_available, INT64_MAX);
    atomic_store(&fill_rate, 0);
    for (int i = 0; i < CALLER_COUNT; i++) {
        atomic_store(&refused[i], 0);
    }
    atomic_store(&interrupted, 0);
    atomic_store(&last_refused, 0);
    atomic_store(&spilled_bytes, 0);
    atomic_store(&spilled_count, 0);
    disk_bytes_at_start = disk_bytes_written();
    atomic_store(&armed, is_running);
    pthread_cond_signal(&state_changed);
    pthread_mutex_unlock(&state_lock);
}

/* Disarm: no trips and no refusals until the next tfguard_arm(). */
EXPORT void tfguard_disarm(void)
{
    atomic_store(&armed, false);
    atomic_store(&interrupt_wanted, false);
    pthread_mutex_lock(&state_lock); /* waits for a trip in progress */
    pthread_mutex_unlock(&state_lock);
}

/* Note that the exception was raised. Trips again if available memory continues to fall. */
EXPORT void tfguard_delivered(void)
{
    atomic_store(&interrupt_wanted, false);
    atomic_store(&delivered_us, now_us());
    atomic_store(&delivered_available, atomic_load(&judged_available));
    atomic_store(&delivered, true);
}

/* ---------------------------------------------------------------------------------------------
 * 4. Granted, but not touched yet
 *
 * A block uses memory only once it is filled. If 1.5 GB are available and two threads request 1 GB
 * each, only one request may be granted. mincore() counts the pages that are not resident yet, so
 * free() needs no hook.
 */

static const size_t NOTED_BYTES = 4 << 20; /* smaller blocks are filled before the next request */
/* A block that is not filled by then counts as sparse. First use of memory on a busy virtual machine
 * was seen at 500 MB/s; the code that fills it has to compute as well. */
static const int64_t NOTED_US = 2000000, NOTED_US_PER_MIB = 10000, SLOWLY_NOTED_US = 120000000;

static struct grant {
    char *block;
    size_t size;
    int64_t us;
    pthread_t thread;
    bool may_wait; /* for its use: zeros, or numpy.empty() in the user's code */
    bool is_slow;  /* filled while something is computed for each part */
} grants[64];
static unsigned next_grant;
static pthread_mutex_t grants_lock = PTHREAD_MUTEX_INITIALIZER;

/* Bytes of a block that have no page yet; -1 if it is no longer mapped. Blocks above 64 MiB are
 * sampled: each look reads 256 pages. */
static int64_t untouched_bytes(const void *block, size_t size)
{
    enum { LOOK = 256, MOST_LOOKS = 64 };
    unsigned char present[LOOK];
    uintptr_t start = (uintptr_t)block & ~(page_bytes - 1);
    size_t pages = (round_up((uintptr_t)block + size, page_bytes) - start) / page_bytes;
    size_t looks = (pages + LOOK - 1) / LOOK;
    size_t stride = looks > MOST_LOOKS ? looks / MOST_LOOKS * LOOK : LOOK;
    size_t seen = 0, missing = 0;
    for (size_t page = 0; page < pages; page += stride) {
        size_t count = pages - page < LOOK ? pages - page : LOOK;
        if (mincore((void *)(start + page * page_bytes), count * page_bytes, present) != 0) {
            return -1;
        }
        for (size_t i = 0; i < count; i++) {
            missing += !(present[i] & 1);
        }
        seen += count;
    }
    return (int64_t)((double)missing / (double)seen * (double)(pages * page_bytes));
}

static void note(void *block, size_t size, bool may_wait, bool is_slow)
{
    if (block == NULL || size < NOTED_BYTES || !atomic_load(&armed)) {
        return;
    }
    if ((int64_t)size > atomic_load(&known_available)) {
        return; /* granted because it is probably sparse */
    }
    pthread_mutex_lock(&grants_lock);
    for (size_t i = 0; i < LENGTH(grants); i++) {
        if (grants[i].block == block) {
            grants[i].block = NULL; /* was freed and allocated again since */
        }
    }
    grants[next_grant] = 
        (struct grant){block, size, now_us(), pthread_self(), may_wait, is_slow};
    next_grant = (next_grant + 1) % LENGTH(grants);
    pthread_mutex_unlock(&grants_lock);
}

static void note_grant(void *block, size_t size, bool may_wait)
{
    note(block, size, may_wait, false);
}

static void note_slow_grant(void *block, size_t size)
{
    note(block, size, false, true);
}

enum which { ALL_GRANTS, ABOUT_TO_BE_FILLED };

static bool counts(const struct grant *grant, enum which which)
{
    return grant->block != NULL && (which == ALL_GRANTS || !grant->may_wait ||
                                    !pthread_equal(grant->thread, pthread_self()));
}

/* Bytes granted but not used yet. Counts pages only if that matters: if all grants together would
 * not fit into `room`. */
static int64_t promised_bytes(int64_t room, enum which which)
{
    int64_t sum = 0, now = now_us();
    int saved = errno;
    pthread_mutex_lock(&grants_lock);
    for (size_t i = 0; i < LENGTH(grants); i++) {
        int64_t most_us = grants[i].is_slow
                              ? SLOWLY_NOTED_US
                              : NOTED_US + (int64_t)(grants[i].size >> 20) * NOTED_US_PER_MIB;
        if (grants[i].block != NULL && now - grants[i].us > most_us) {
            grants[i].block = NULL;
        }
        sum += counts(&grants[i], which) ? (int64_t)grants[i].size : 0;
    }
    for (size_t i = 0; sum > room && i < LENGTH(grants); i++) {
        if (!counts(&grants[i], which)) {
            continue;
        }
        int64_t untouched = untouched_bytes(grants[i].block, grants[i].size);
        sum -= (int64_t)grants[i].size - at_least_0(untouched);
        if (untouched <= 0) {
            grants[i].block = NULL;
        }
    }
    pthread_mutex_unlock(&grants_lock);
    errno = saved;
    return sum;
}

/* ---------------------------------------------------------------------------------------------
 * 5. Disk-backed blocks
 *
 * A shared mapping of an unlinked file. Its pages are file cache: the system writes them out
 * instead of killing a process. The block is preceded by the header that glibc writes for a block
 * that malloc has mapped, so glibc's free() and realloc() handle it, and free() needs no patch:
 *
 *     start of the mapping                                  block (its offset in the page is a
 *                                                           power of two, which free() checks)
 *     |<------ offset - 16 ------>| prev_size | size + flag |  ...
 *                                   offset-16   rest of the mapping | IS_MMAPPED
 *
 * Three traps:
 *   - A full disk causes SIGBUS at the first write to a page. So disk space is allocated in advance
 *     with fallocate(), which fails with an error instead.
 *   - realloc() grows the mapping, and a page beyond the end of the file causes SIGBUS too. So the
 *     file is much longer than the block, and the realloc hooks allocate disk space first.
 *   - A forked child would share the pages with its parent. So it maps them privately (section 13).
 */

static const size_t HEADER_BYTES = 2 * sizeof(size_t);
static const size_t IS_MMAPPED = 2, SIZE_FLAGS = 7;
static const char DISK_NAME[] = "/.tfguard-block-XXXXXX";
static const int64_t WRITTEN_AGAIN_US = 20000, MAPS_AGAIN_US = 200000;

static struct disk_block {
    char *start; /* NULL: this entry of the table is free */
    size_t mapped;
    int fd;
    dev_t device;
    ino_t inode;
    char name[sizeof DISK_NAME];
} disk_blocks[64];
static atomic_int disk_block_count;
static pthread_mutex_t disk_lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_bool disk_armed;
static char disk_folder[PATH_MAX - sizeof DISK_NAME];
static int64_t disk_keep_free, disk_quota;

/* False after user code has closed all descriptors: the number may have been reused. */
static bool owns_descriptor(const struct disk_block *block)
{
    struct stat about;
    return fstat(block->fd, &about) == 0 && about.st_ino == block->inode &&
           about.st_dev == block->device;
}

/* Opens an unlinked file with `size` bytes allocated, followed by a long hole; -1 if the disk or
 * its file system does not allow that. */
static int open_disk_file(size_t size, char *name)
{
    char path[PATH_MAX];
    struct statfs about;
    struct rlimit most;
    off_t lengths[] = {(off_t)1 << 40, (off_t)size * 4};
    bool is_long = false;

    if (statfs(disk_folder, &about) != 0) {
        return -1;
    }
    int64_t unit = about.f_frsize != 0 ? (int64_t)about.f_frsize : (int64_t)about.f_bsize;
    if ((int64_t)about.f_bavail < ((int64_t)size + disk_keep_free) / unit) {
        return -1;
    }
    /* Beyond this limit, file calls not only fail but send SIGXFSZ, which ends the process. */
    if (getrlimit(RLIMIT_FSIZE, &most) != 0 ||
        (most.rlim_cur != RLIM_INFINITY && most.rlim_cur < size * 4)) {
        return -1;
    }
    snprintf(path, sizeof path, "%s%s", disk_folder, DISK_NAME);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    unlink(path);
    memcpy(name, strrchr(path, '/'), sizeof DISK_NAME);
    int failed;
    do {
        failed = fallocate(fd, 0, 0, (off_t)size);
    } while (failed && errno == EINTR);
    for (size_t i = 0; !failed && !is_long && i < LENGTH(lengths); i++) {
        is_long = (most.rlim_cur == RLIM_INFINITY || (rlim_t)lengths[i] <= most.rlim_cur) &&
                  ftruncate(fd, lengths[i]) == 0;
    }
    /* The space must be allocated but contain no data: a file system that does not distinguish the
     * two would report the whole block as written. */
    if (failed || !is_long || lseek(fd, 0, SEEK_DATA) != -1 || errno != ENXIO) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Holds disk_lock. */
static struct disk_block *free_place(size_t wanted)
{
    struct disk_block *place = NULL;
    int64_t held = 0;
    for (size_t i = 0; i < LENGTH(disk_blocks); i++) {
        if (disk_blocks[i].start == NULL) {
            place = &disk_blocks[i];
        } else {
            held += (int64_t)disk_blocks[i].mapped;
        }
    }
    return held + (int64_t)wanted <= disk_quota ? place : NULL;
}

static void update_disk_blocks(void);

/* A zero-filled block with the alignment of aligned_alloc; NULL if the disk has no space. */
static void *disk_allocate(size_t size, size_t alignment)
{
    size_t offset = alignment > HEADER_BYTES ? alignment : HEADER_BYTES;
    char *block = NULL;
    if (!atomic_load(&disk_armed) || offset > page_bytes || (offset & (offset - 1)) != 0 ||
        size > PTRDIFF_MAX / 8) {
        return NULL;
    }
    size_t mapped = round_up(size + offset, page_bytes);
    pthread_mutex_lock(&disk_lock);
    update_disk_blocks();
    struct disk_block *place = free_place(mapped);
    int fd = place == NULL ? -1 : open_disk_file(mapped, place->name);
    struct stat about;
    if (fd >= 0 && fstat(fd, &about) == 0) {
        char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (start != MAP_FAILED) {
            /* No read-ahead: it would load pages that were never written, and they would count
             * as written. */
            madvise(start, mapped, MADV_RANDOM);
            block = start + offset;
            ((size_t *)block)[-2] = offset - HEADER_BYTES;
            ((size_t *)block)[-1] = (mapped - (offset - HEADER_BYTES)) | IS_MMAPPED;
            place->start = start;
            place->mapped = mapped;
            place->fd = fd;
            place->device = about.st_dev;
            place->inode = about.st_ino;
            atomic_fetch_add(&disk_block_count, 1);
            atomic_fetch_add(&spilled_bytes, (int64_t)size);
            atomic_fetch_add(&spilled_count, 1);
        }
    }
    if (fd >= 0 && block == NULL) {
        close(fd);
    }
    pthread_mutex_unlock(&disk_lock);
    return block;
}

static bool follow_disk_block(const struct mapping *mapping, void *argument)
{
    bool *seen = argument;
    const char *name = strstr(mapping->name, "/.tfguard-block-");
    for (size_t i = 0; name != NULL && i < LENGTH(disk_blocks); i++) {
        struct disk_block *block = &disk_blocks[i];
        if (block->start != NULL && strncmp(name, block->name, sizeof DISK_NAME - 1) == 0) {
            block->start = (char *)mapping->start; /* realloc() may have moved it */
            block->mapped = mapping->end - mapping->start;
            seen[i] = true;
        }
    }
    return false;
}

/* Finds blocks that were freed since: glibc unmaps them without notice. Holds disk_lock. */
static void update_disk_blocks(void)
{
    bool seen[LENGTH(disk_blocks)] = {false};
    if (atomic_load(&disk_block_count) == 0) {
        return;
    }
    find_mapping(follow_disk_block, seen);
    for (size_t i = 0; i < LENGTH(disk_blocks); i++) {
        struct disk_block *block = &disk_blocks[i];
        if (block->start != NULL && !seen[i]) {
            if (owns_descriptor(block)) {
                close(block->fd); /* frees the file's blocks on disk */
            }
            block->start = NULL;
            atomic_fetch_sub(&disk_block_count, 1);
        }
    }
}

/* Bytes of the block that were written, estimated from 256 probes. File systems differ in whether
 * a dirty page counts as written, but all of them report it as data. */
static int64_t data_bytes(const struct disk_block *block)
{
    enum { PROBES = 256 };
    off_t part = (off_t)(block->mapped / PROBES), mask = ~((off_t)page_bytes - 1);
    int64_t hits = 0;
    for (off_t i = 0; i < PROBES; i++) {
        /* At a varying offset in each part: otherwise a program that writes every n-th page would
         * be over- or underestimated. */
        off_t at = (part * i + i * 2654435761 % (part + 1)) & mask;
        hits += lseek(block->fd, at, SEEK_DATA) == at;
    }
    return (int64_t)block->mapped / PROBES * hits;
}

/* Bytes written so far in all disk-backed blocks. Called only with state_lock. */
static int64_t disk_bytes_written(void)
{
    static int64_t written, next_us, next_maps_us;
    int64_t now = now_us();
    if (atomic_load(&disk_block_count) == 0) {
        return written = 0;
    }
    if (now < next_us) {
        return written;
    }
    pthread_mutex_lock(&disk_lock);
    if (now >= next_maps_us) {
        update_disk_blocks();
        next_maps_us = now + MAPS_AGAIN_US;
    }
    written = 0;
    for (size_t i = 0; i < LENGTH(disk_blocks); i++) {
        if (disk_blocks[i].start != NULL && owns_descriptor(&disk_blocks[i])) {
            written += data_bytes(&disk_blocks[i]);
        }
    }
    pthread_mutex_unlock(&disk_lock);
    next_us =
        now + larger(WRITTEN_AGAIN_US, 20 * (now_us() - now)); /* at most a twentieth of a core */
    return written;
}

static struct disk_block *disk_block_at(const char *address)
{
    for (size_t i = 0; i < LENGTH(disk_blocks); i++) {
        struct disk_block *block = &disk_blocks[i];
        if (block->start != NULL && address >= block->start &&
            address < block->start + block->mapped) {
            return block;
        }
    }
    return NULL;
}

/* Before realloc() grows a block: NOT_ON_DISK, or HAS_ROOM after disk space was allocated, or
 * NO_ROOM. */
static enum growth { NOT_ON_DISK, HAS_ROOM, NO_ROOM } grow_on_disk(const char *address, size_t size)
{
    if (atomic_load(&disk_block_count) == 0 || address == NULL) {
        return NOT_ON_DISK;
    }
    enum growth growth = NOT_ON_DISK;
    int saved = errno;
    pthread_mutex_lock(&disk_lock);
    update_disk_blocks(); /* another block may be at the address of a freed one */
    struct disk_block *block = disk_block_at(address);
    if (block != NULL) {
        off_t needed = (off_t)round_up(size + (size_t)(address - block->start), page_bytes);
        bool done = size < PTRDIFF_MAX / 8 && owns_descriptor(block) &&
                    fallocate(block->fd, 0, 0, needed) == 0;
        growth = done ? HAS_ROOM : NO_ROOM;
    }
    pthread_mutex_unlock(&disk_lock);
    errno = saved;
    return growth;
}

static const void *object_of(const void *address)
{
    Dl_info about;
    return address != NULL && dladdr(address, &about) ? about.dli_fbase : NULL;
}

/* A program that is not position-independent and takes the address of a library's function, such as
 * Debian's Python, has a stub that is this address for all libraries. */
static bool is_stub(const void *function)
{
    Dl_info about;
    ElfW(Sym) *symbol = NULL;
    return dladdr1(function, &about, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL &&
           symbol->st_shndx == SHN_UNDEF;
}

/* The function of this name that calls reach; NULL if there is none. dlsym() may return a stub. */
static void *function_named(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL || !is_stub(found)) {
        return found;
    }
    void *program = dlopen(NULL, RTLD_NOLOAD | RTLD_LAZY);
    struct link_map *object = NULL;
    if (program == NULL || dlinfo(program, RTLD_DI_LINKMAP, &object) != 0) {
        return found;
    }
    while ((object = object->l_next) != NULL) { /* in the order in which the loader searches */
        void *library = dlopen(object->l_name, RTLD_NOLOAD | RTLD_LAZY);
        void *function = library == NULL ? NULL : dlsym(library, name);
        if (library != NULL) {
            dlclose(library);
        }
        if (function != NULL && object_of(function) == object_of(object->l_ld)) {
            found = function;
            break;
        }
    }
    dlclose(program);
    return found;
}

/* True if malloc_usable_size() may be called on blocks of malloc(). */
static bool is_whole_malloc(void)
{
    const void *library = object_of(function_named("malloc"));
    return library != NULL && library == object_of(function_named("realloc")) &&
           library == object_of(function_named("malloc_usable_size"));
}

/* True if malloc's functions are glibc's: the free() of another allocator would abort on our
 * header. */
static bool is_glibc_malloc(void)
{
    static const char *const names[] = {"malloc", "free",           "realloc",
                                        "calloc", "posix_memalign", "malloc_usable_size"};
    const void *glibc = object_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    for (size_t i = 0; i < LENGTH(names); i++) {
        if (glibc == NULL || object_of(function_named(names[i])) != glibc) {
            return false;
        }
    }
    return true;
}

/* True if a large block of this glibc has the header that disk_allocate() writes. */
static bool has_known_header(size_t alignment)
{
    void *block;
    if (posix_memalign(&block, alignment, 64 << 20) != 0) { /* above every mmap threshold */
        return false;
    }
    size_t before = ((size_t *)block)[-2], size = ((size_t *)block)[-1];
    uintptr_t start = (uintptr_t)block - HEADER_BYTES - before;
    bool known = (size & SIZE_FLAGS) == IS_MMAPPED && start % page_bytes == 0 &&
                 (before + (size & ~SIZE_FLAGS)) % page_bytes == 0 &&
                 malloc_usable_size(block) == (size & ~SIZE_FLAGS) - HEADER_BYTES;
    free(block);
    return known;
}

/* Enables disk-backed blocks in a folder. Returns NULL, or the reason why that is not possible. */
EXPORT const char *tfguard_arm_disk(const char *folder, int64_t keep_free, int64_t quota)
{
    enum { TMPFS = 0x01021994, RAMFS = 0x858458f6, HUGETLBFS = 0x958458f6 };
    struct statfs about;
    if (atomic_load(&disk_armed)) {
        return NULL;
    }
    if (!is_glibc_malloc()) {
        return "Another memory allocator than glibc's is loaded.";
    }
    if (!has_known_header(16) || !has_known_header(page_bytes) || !has_known_header(64)) {
        return "This version of glibc lays out large blocks in an unknown way.";
    }
    if (strlen(folder) >= sizeof disk_folder || statfs(folder, &about) != 0) {
        return "The folder for it cannot be read.";
    }
    unsigned type = (unsigned)about.f_type;
    if (type == TMPFS || type == (unsigned)RAMFS || type == (unsigned)HUGETLBFS) {
        return "The folder for it is in memory.";
    }
    strcpy(disk_folder, folder);
    disk_keep_free = keep_free;
    disk_quota = quota;
    atomic_store(&disk_armed, true);

    /* Test with one block, from allocation to free(). */
    size_t size = (size_t)MIB + 1;
    char *block = disk_allocate(size, 64);
    bool works =
        block != NULL && malloc_usable_size(block) >= size && block[0] == 0 && block[size - 1] == 0;
    if (works) {
        memset(block, 1, size);
        free(block);
        pthread_mutex_lock(&disk_lock);
        int before = atomic_load(&disk_block_count);
        update_disk_blocks();
        works = atomic_load(&disk_block_count) < before;
        pthread_mutex_unlock(&disk_lock);
    }
    atomic_store(&disk_armed, works);
    return works ? NULL : "Its disk is too full, or its file system cannot reserve room.";
}

/* ---------------------------------------------------------------------------------------------
 * 6. The caller
 */

/*
 * The entry point does not identify the caller: the outputs of an op and tf.constant() use the same
 * ones. So, only on the slow path, the stack is compared with the address ranges of
 * OpKernelContext::allocate_*. Callers of these return the error to TensorFlow (OP_REQUIRES_OK),
 * with one exception: a helper of a oneDNN op only returns from itself, and Compute() continues
 * with a missing output. In that case the direct caller has "Mkl" in its name and is not Compute().
 *
 * XLA's allocator (TfAllocatorAdapter::Allocate) is left out. It reports the error too, but by then
 * a compiled training step has given away the memory of the variables that it updates. They remain
 * in use: seen with TensorFlow 2.21, weights of 1e39 after the error and then a segmentation fault.
 */

static const char *const ALLOCATE_NAMES[] = {
    "_ZN10tensorflow15OpKernelContext15allocate_outputEiRKNS_11TensorShapeEPPNS_6TensorE",
    "_ZN10tensorflow15OpKernelContext15allocate_outputEiRKNS_11TensorShapeEPPNS_"
    "6TensorEN3tsl19AllocatorAttributesE",
    "_ZN10tensorflow15OpKernelContext13allocate_tempENS_8DataTypeERKNS_11TensorShapeEPNS_6TensorE",
    "_ZN10tensorflow15OpKernelContext13allocate_tempENS_8DataTypeERKNS_11TensorShapeEPNS_"
    "6TensorEN3tsl19AllocatorAttributesE",
    "_ZN10tensorflow15OpKernelContext13allocate_tempENS_8DataTypeERKNS_11TensorShapeEPNS_"
    "6TensorEN3tsl19AllocatorAttributesE"
    "RKNS7_20AllocationAttributesE",
    "_ZN10tensorflow15OpKernelContext15allocate_tensorENS_8DataTypeERKNS_11TensorShapeEPNS_"
    "6TensorEN3tsl19AllocatorAttributesE"
    "RKNS7_20AllocationAttributesE",
};

static struct range allocate_ranges[LENGTH(ALLOCATE_NAMES)];

/* False if this TensorFlow lacks one of the functions. */
static bool find_allocate_ranges(void *framework)
{
    for (size_t i = 0; i < LENGTH(ALLOCATE_NAMES); i++) {
        Dl_info about;
        ElfW(Sym) *symbol = NULL;
        const char *start = dlsym(framework, ALLOCATE_NAMES[i]);
        if (start == NULL || dladdr1(start, &about, (void **)&symbol, RTLD_DL_SYMENT) == 0 ||
            symbol == NULL || symbol->st_size == 0) {
            return false;
        }
        allocate_ranges[i] = (struct range){start, start + symbol->st_size};
    }
    return true;
}

static bool is_allocate(const char *address)
{
    for (size_t i = 0; i < LENGTH(allocate_ranges); i++) {
        /* A return address; it may equal `end`, because the call may be the last instruction. */
        if (address > allocate_ranges[i].start && address <= allocate_ranges[i].end) {
            return true;
        }
    }
    return false;
}

static bool is_onednn_helper(const void *address)
{
    Dl_info about;
    return dladdr(address, &about) != 0 && about.dli_sname != NULL &&
           strstr(about.dli_sname, "Mkl") != NULL && strstr(about.dli_sname, "7Compute") == NULL;
}

static bool caller_handles_refusal(void)
{
    void *frames[40];
    int count = backtrace(frames, LENGTH(frames));
    bool in_allocate = false;
    for (int i = 0; i < count; i++) {
        if (is_allocate(frames[i])) {
            in_allocate = true;
        } else if (in_allocate) {
            return !is_onednn_helper(frames[i]);
        }
    }
    return in_allocate;
}

/* ---------------------------------------------------------------------------------------------
 * 7. The decision
 */

/* SPARSE_ON_DISK: the block is probably used only in part. */
enum answer { GRANT, REFUSE, ON_DISK, SPARSE_ON_DISK };

static const size_t CHEAP_BYTES =
    8 << 20; /* smaller requests use the newest sample while plenty is available */
static const int64_t CHEAP_US = 20000;
static const int64_t WAIT_US = 150000; /* other threads may free memory during the wait */
static const int64_t NO_WAIT_US =
    1000000; /* after a refusal: a loop of large requests must not become slow */
static const int64_t IGNORED_COUNT = 200; /* refusals in one cell */

/* What the hooks in TensorFlow do. RELEASES: only let its pool be released (section 12). REFUSES:
 * also refuse and place on disk. */
static atomic_int tensorflow_hooks;
enum { NO_HOOKS, RELEASES, REFUSES };

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
    int64_t available = read_available(), needed = (int64_t)size + atomic_load(&reserve_bytes);
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
static void stop_if_beyond(size_t size)
{
    int64_t available = read_available();
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

static bool is_empty_of_user(void);
static bool runs_notebook_code(void);

static enum answer not_refused(void)
{
    if (!self.resizing) {
        return disk_or_grant();
    }
    trip_now();
    return GRANT;
}

/* The answer if memory is short; section 11 explains why TensorFlow's entry points differ. */
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

static enum answer decide(size_t size, enum caller caller)
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
static enum answer ask(size_t size, size_t alignment, enum caller caller, void **block)
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
static bool may_resize(void *block, size_t size, enum caller caller)
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

/* ---------------------------------------------------------------------------------------------
 * 8. Patching: replace pointers, record them and restore them
 */

enum part { PART_NUMPY, PART_FOURIER, PART_TENSORFLOW, PART_PANDAS, PART_SKLEARN };

static struct patch {
    enum part part;
    void **slot;
    void *original, *replacement;
} patches[256];
static size_t patch_count;

/* Writes a pointer into a page that the loader may have made read-only (RELRO), and restores the
 * protection of the page. */
static bool write_pointer(void **slot, void *value)
{
    struct address_query query = {.address = (uintptr_t)slot};
    if (!find_mapping(holds_address, &query)) {
        return false;
    }
    void *page = (void *)((uintptr_t)slot & ~(page_bytes - 1));
    int protection = query.found.protection;
    bool is_writable = (protection & PROT_WRITE) != 0;
    if (!is_writable && mprotect(page, page_bytes, protection | PROT_WRITE) != 0) {
        return false;
    }
    __atomic_store_n(slot, value, __ATOMIC_RELEASE); /* other threads may be calling through it */
    if (!is_writable) {
        mprotect(page, page_bytes, protection);
    }
    return true;
}

static bool patch(enum part part, void **slot, void *replacement)
{
    void *original = *slot;
    if (original == replacement) {
        return true;
    }
    if (patch_count == LENGTH(patches) || !write_pointer(slot, replacement)) {
        return false;
    }
    patches[patch_count++] = (struct patch){part, slot, original, replacement};
    return true;
}

/* Restores pointers that still have our value. `keeps` (may be NULL): replacements that stay. */
static void restore(enum part part, bool (*keeps)(const void *replacement))
{
    size_t kept = 0;
    for (size_t i = 0; i < patch_count; i++) {
        struct patch *one = &patches[i];
        bool stays = one->part != part || (keeps != NULL && keeps(one->replacement));
        if (!stays && *one->slot == one->replacement) {
            write_pointer(one->slot, one->original);
        }
        if (stays) {
            patches[kept++] = *one;
        }
    }
    patch_count = kept;
}

/* ---------------------------------------------------------------------------------------------
 * 9. NumPy: its default memory handler, in place
 *
 * PyDataMem_SetHandler() sets a context variable, which does not affect other threads. So the
 * pointers in the default handler itself are replaced: all threads use it, and existing arrays stay
 * valid, because free() stays the same. Source: PyDataMem_Handler, numpy/ndarraytypes.h.
 */

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

/* numpy.empty() in the user's own code is like numpy.zeros(): it may be used only in part. NumPy's
 * functions and other packages fill what they get from it. */
static const void *empty_functions[2];
static void *(*get_frame)(void), *(*get_code)(void *), *(*get_attribute)(void *, const char *);
static void *(*get_caller)(void *);
static const char *(*get_text)(void *);
static void (*keep_object)(void *), (*release_object)(void *);
static int (*pause_collection)(void), (*resume_collection)(void);
/* Folders of code that is not the user's: that of NumPy, next to which other packages are, of the
 * standard library, and of this package. */
static char packages[PATH_MAX], standard_library[PATH_MAX], own_package[PATH_MAX];
static const void *(*function_of)(const void *); /* _Unwind_FindEnclosingFunction */

static bool is_in_empty(void)
{
    void *frames[16];
    int count = backtrace(frames, LENGTH(frames));
    for (int i = 0; i < count; i++) {
        const void *it = function_of((char *)frames[i] - 1);
        if (it != NULL && (it == empty_functions[0] || it == empty_functions[1])) {
            return true;
        }
    }
    return false;
}

static bool is_in(const char *path, const char *folder)
{
    return folder[0] != 0 && strncmp(path, folder, strlen(folder)) == 0;
}

static bool is_users_file(const char *path)
{
    return !is_in(path, packages) && strstr(path, "/site-packages/") == NULL &&
           strstr(path, "/dist-packages/") == NULL;
}

/* True if the innermost Python function belongs to no installed package. */
static bool is_user_code(void)
{
    void *frame = get_frame();
    if (frame == NULL) {
        return false;
    }
    void *code = get_code(frame), *file = get_attribute(code, "co_filename");
    const char *path = file == NULL ? NULL : get_text(file);
    bool is_users = path != NULL && is_users_file(path);
    release_object(file);
    release_object(code);
    return is_users;
}

/* A refusal becomes a MemoryError where the request was made. Code of the notebook may get one, and
 * so may what a pool or TensorFlow runs for it: they hand it on. Elsewhere it ends what others
 * wait for: the thread of a pool that receives the results, or the kernel's own event loop while a
 * cell awaits. */
static const struct python_function {
    const char *end_of_path, *name; /* NULL: any */
    bool hands_on;
} KNOWN_FUNCTIONS[] = {
    {"/concurrent/futures/thread.py", "run", true},
    {"/multiprocessing/pool.py", "worker", true},
    {"/tensorflow/python/ops/script_ops.py", NULL, true},
    {"/asyncio/base_events.py", "_run_once", false},
};

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Functions of this package that only call others, and how far from the request others count. */
static const char *const CALLS_OTHERS[] = {"run_and_record", "checked"};
enum { NEAR = 8 };

static enum { HANDS_ON, BREAKS, ASK_CALLER } kind_of(const char *path, const char *name, int depth)
{
    for (size_t i = 0; i < LENGTH(KNOWN_FUNCTIONS); i++) {
        const struct python_function *one = &KNOWN_FUNCTIONS[i];
        if (ends_with(path, one->end_of_path) &&
            (one->name == NULL || strcmp(name, one->name) == 0)) {
            return one->hands_on ? HANDS_ON : BREAKS;
        }
    }
    if (is_in(path, own_package)) {
        bool is_our_work = depth < NEAR;
        for (size_t i = 0; i < LENGTH(CALLS_OTHERS); i++) {
            is_our_work &= strcmp(name, CALLS_OTHERS[i]) != 0;
        }
        return is_our_work ? BREAKS : ASK_CALLER;
    }
    bool is_users =
        is_users_file(path) && !is_in(path, standard_library) && !is_in(path, "<frozen ");
    return is_users ? HANDS_ON : ASK_CALLER;
}

/* Walks the Python frames of this thread, the innermost first. Without the GIL, in native code that
 * Python has called: true. */
static bool runs_notebook_code(void)
{
    if (pause_collection == NULL || !holds_interpreter_lock()) {
        return true;
    }
    /* Looking at a frame may allocate an object: no collection here, inside an allocation. */
    int was_on = pause_collection(), found = ASK_CALLER;
    void *frame = get_frame();
    if (frame != NULL) {
        keep_object(frame);
    }
    for (int depth = 0; frame != NULL && found == ASK_CALLER; depth++) {
        void *code = get_code(frame);
        void *file = get_attribute(code, "co_filename"), *name = get_attribute(code, "co_name");
        const char *path = file == NULL ? NULL : get_text(file);
        const char *text = name == NULL ? NULL : get_text(name);
        if (path != NULL && text != NULL) {
            found = kind_of(path, text, depth);
        }
        release_object(file);
        release_object(name);
        release_object(code);
        void *caller = get_caller(frame);
        release_object(frame);
        frame = caller;
    }
    release_object(frame);
    if (was_on) {
        resume_collection();
    }
    return found == HANDS_ON;
}

static bool is_empty_of_user(void)
{
    return empty_functions[0] != NULL && holds_interpreter_lock() && is_in_empty() &&
           is_user_code();
}

/* Call before the gate is armed. Both folders end with a slash. */
EXPORT void tfguard_use_folders(const char *standard, const char *own)
{
    snprintf(standard_library, sizeof standard_library, "%s", standard);
    snprintf(own_package, sizeof own_package, "%s", own);
    *(void **)&holds_interpreter_lock = dlsym(RTLD_DEFAULT, "PyGILState_Check");
    *(void **)&get_frame = dlsym(RTLD_DEFAULT, "PyEval_GetFrame");
    *(void **)&get_caller = dlsym(RTLD_DEFAULT, "PyFrame_GetBack");
    *(void **)&get_code = dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
    *(void **)&get_attribute = dlsym(RTLD_DEFAULT, "PyObject_GetAttrString");
    *(void **)&get_text = dlsym(RTLD_DEFAULT, "PyUnicode_AsUTF8");
    *(void **)&keep_object = dlsym(RTLD_DEFAULT, "Py_IncRef");
    *(void **)&release_object = dlsym(RTLD_DEFAULT, "Py_DecRef");
    *(void **)&resume_collection = dlsym(RTLD_DEFAULT, "PyGC_Enable");
    if (holds_interpreter_lock && get_frame && get_caller && get_code && get_attribute &&
        get_text && keep_object && release_object && resume_collection) {
        *(void **)&pause_collection = dlsym(RTLD_DEFAULT, "PyGC_Disable");
    }
}

static void know_empty(const void *empty, const void *empty_like)
{
    void *unwinder = dlopen("libgcc_s.so.1", RTLD_LAZY);
    if (unwinder != NULL) {
        *(void **)&function_of = dlsym(unwinder, "_Unwind_FindEnclosingFunction");
    }
    if (function_of && pause_collection) {
        empty_functions[0] = empty;
        empty_functions[1] = empty_like;
    }
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
    snprintf(packages, sizeof packages, "%s", folder);
    know_empty(empty, empty_like);
    for (size_t i = 0; i < LENGTH(slots); i++) {
        if (!patch(PART_NUMPY, slots[i], replacements[i])) {
            restore(PART_NUMPY, NULL);
            return "The system does not let NumPy's memory handler be changed.";
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------------
 * 10. CPython: the raw domain of its allocator, and arenas
 *
 * Objects above 512 bytes come from the raw domain, smaller ones from arenas, or from the raw
 * domain if an arena cannot be allocated.
 *
 * A C call such as list(range(10**9)) may run for seconds without checking for signals. Refusing a
 * single small request raises MemoryError inside such a call. This is used if the main thread has
 * not reacted to the signal, or cannot because a call in another thread lasts. Source:
 * PyMemAllocatorEx and PyObjectArenaAllocator, Python's C API, "Memory Management".
 */

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
    if (thread_state_of_python == NULL) {
        find_python_locks();
    }
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
static void restore_python(void)
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

/* ---------------------------------------------------------------------------------------------
 * 11. TensorFlow: its pool, and its calls to malloc
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

struct allocation_attributes { /* tsl::AllocationAttributes */
    bool retry_on_failure;     /* waits for memory for up to 10 s */
    bool is_logged;
    void *freed_by;
};

enum memory_type {
    UNKNOWN_MEMORY = 0,
    DEVICE_MEMORY,
    PAGEABLE_MEMORY,
    PINNED_MEMORY
}; /* tsl::AllocatorMemoryType */

static struct {
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
static struct pool {
    _Atomic(void *) address;
    atomic_int kind;
} pools[8];
enum { NEW_POOL, HOST_POOL, OTHER_POOL };

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

/* When the release of the pool began that is under way (section 12); 0 without one. */
static _Atomic int64_t release_us;
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

/* Finds the slots of the pool's vtable. False if they differ from the tested versions. */
static bool find_virtual_functions(void *framework, void **slots[])
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

/* --- Calls to malloc by TensorFlow's libraries. glibc's free() frees all these blocks, also when
 * called by operator delete. */

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

struct import {
    const char *name;
    void *replacement;
    void **original; /* NULL: this file calls the function by name */
};

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

#if defined(__x86_64__)
enum { SLOT_OF_CALL = R_X86_64_JUMP_SLOT, SLOT_OF_POINTER = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { SLOT_OF_CALL = R_AARCH64_JUMP_SLOT, SLOT_OF_POINTER = R_AARCH64_GLOB_DAT };
#else
#error "The relocation numbers of this processor are not known: see elf.h"
#endif

struct import_job {
    enum part part;
    const struct import *imports;
    size_t import_count;
    size_t patched; /* slots */
    const char *problem;
};

static bool is_in_file(const void *address, const char *start_of_name)
{
    Dl_info about;
    if (dladdr(address, &about) == 0 || about.dli_fname == NULL) {
        return false;
    }
    const char *name = strrchr(about.dli_fname, '/');
    return strncmp(name == NULL ? about.dli_fname : name + 1, start_of_name,
                   strlen(start_of_name)) == 0;
}

/* Replaces the function in one slot, if it is the expected one. */
static void patch_import(struct import_job *job, const struct import *import, void **slot,
                         const void *library)
{
    void *current = *slot;
    if (current == import->replacement) {
        job->patched++;
        return;
    }
    void *function = current;
    /* Not called yet, the slot points to the loader's stub. */
    if (object_of(current) == library || is_stub(current)) {
        function = function_named(import->name);
        if (function == NULL) {
            void *standard = dlopen("libstdc++.so.6", RTLD_NOLOAD | RTLD_LAZY);
            function = standard == NULL ? NULL : dlsym(standard, import->name);
            if (standard != NULL) {
                dlclose(standard);
            }
        }
    }
    /* Some releases define operator new themselves; it calls malloc through a slot that is patched
     * as well. */
    if (function != NULL && is_in_file(function, "libtensorflow_")) {
        return;
    }
    if (function == NULL || (!is_in_file(function, "libc.so") && !is_in_file(function, "libc-") &&
                             !is_in_file(function, "libstdc++.so"))) {
        job->problem = "Its memory does not come from the usual libraries.";
        return;
    }
    if (import->original != NULL) {
        *import->original = function;
    }
    if (patch(job->part, slot, import->replacement)) {
        job->patched++;
    } else {
        job->problem = "The system does not let its calls be changed.";
    }
}

struct library {
    ElfW(Addr) base;
    const ElfW(Dyn) * dynamic;
};

struct library_search {
    bool (*wants)(const char *path);
    struct library found[64];
    size_t count;
};

/* Only collects: the loader holds a lock during the callback, and neither dladdr() nor dlsym() may
 * be called under it. */
static int collect_library(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct library_search *search = argument;
    (void)size;
    if (info->dlpi_name == NULL || !search->wants(info->dlpi_name) ||
        search->count == LENGTH(search->found)) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            search->found[search->count++] = (struct library){
                info->dlpi_addr, (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr)};
        }
    }
    return 0;
}

/* Patches the matching relocations of one library. */
static void patch_library(struct import_job *job, const struct library *library)
{
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    const ElfW(Rela) * tables[2] = {NULL, NULL};
    size_t lengths[2] = {0, 0};
    for (const ElfW(Dyn) *entry = library->dynamic; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) { /* glibc has converted file offsets to addresses */
        case DT_SYMTAB: symbols = (const ElfW(Sym) *)entry->d_un.d_ptr; break;
        case DT_STRTAB: names = (const char *)entry->d_un.d_ptr; break;
        case DT_JMPREL: tables[0] = (const ElfW(Rela) *)entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: lengths[0] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_RELA: tables[1] = (const ElfW(Rela) *)entry->d_un.d_ptr; break;
        case DT_RELASZ: lengths[1] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        }
    }
    if (symbols == NULL || names == NULL) {
        return;
    }
    const void *object = object_of(names);
    for (int table = 0; table < 2; table++) {
        for (size_t i = 0; tables[table] != NULL && i < lengths[table]; i++) {
            const ElfW(Rela) *relocation = &tables[table][i];
            unsigned type = ELF64_R_TYPE(relocation->r_info);
            if (type != SLOT_OF_CALL && type != SLOT_OF_POINTER) {
                continue;
            }
            const char *name = names + symbols[ELF64_R_SYM(relocation->r_info)].st_name;
            for (size_t k = 0; k < job->import_count; k++) {
                if (strcmp(name, job->imports[k].name) == 0) {
                    patch_import(job, &job->imports[k],
                                 (void **)(library->base + relocation->r_offset), object);
                }
            }
        }
    }
}

static void patch_libraries(struct import_job *job, bool (*wants)(const char *path))
{
    struct library_search search = {.wants = wants};
    dl_iterate_phdr(collect_library, &search);
    for (size_t i = 0; i < search.count; i++) {
        patch_library(job, &search.found[i]);
    }
}

static bool is_tensorflow(const char *path)
{
    return strstr(path, "/libtensorflow_framework.so") != NULL ||
           strstr(path, "/libtensorflow_cc.so") != NULL;
}

static void restore_tensorflow(void)
{
    atomic_store(&tensorflow_hooks, NO_HOOKS);
    restore(PART_TENSORFLOW, atomic_load(&outside_tensor_count) > 0 ? knows_outside_tensors : NULL);
}

/* Arms the gate in TensorFlow. `refuses`: 0 to only let its pool be released. Returns NULL, the
 * reason for a failure, or "" if it is not loaded. */
EXPORT const char *tfguard_arm_tensorflow(int refuses)
{
    enum { POOL_FUNCTIONS = 2, POOL_IMPORTS = 3 }; /* the first in their tables */
    int wanted = refuses ? REFUSES : RELEASES;
    if (atomic_load(&tensorflow_hooks) == wanted) {
        return NULL;
    }
    void *framework = dlopen("libtensorflow_framework.so.2", RTLD_NOLOAD | RTLD_LAZY);
    if (framework == NULL) {
        return "";
    }
    void **slots[LENGTH(VIRTUAL_FUNCTIONS)];
    bool is_known = (!refuses || find_allocate_ranges(framework)) &&
                    find_virtual_functions(framework, slots);
    dlclose(framework);
    if (!is_known) {
        return "This version of TensorFlow is built in an unknown way.";
    }
    if (!is_glibc_malloc()) {
        return "Another memory allocator than glibc's is loaded.";
    }
    size_t imports = refuses ? LENGTH(TENSORFLOW_IMPORTS) : POOL_IMPORTS;
    size_t functions = refuses ? LENGTH(VIRTUAL_FUNCTIONS) : POOL_FUNCTIONS;
    struct import_job job = {PART_TENSORFLOW, TENSORFLOW_IMPORTS, imports, 0, NULL};
    patch_libraries(&job, is_tensorflow);
    if (job.problem == NULL && job.patched == 0) {
        job.problem = "This version of TensorFlow is built in an unknown way.";
    }
    for (size_t i = 0; job.problem == NULL && i < functions; i++) {
        if (!patch(PART_TENSORFLOW, slots[i], VIRTUAL_FUNCTIONS[i].replacement)) {
            job.problem = "The system does not let its pool be changed.";
        }
    }
    if (job.problem != NULL) {
        restore_tensorflow();
        return job.problem;
    }
    atomic_store(&tensorflow_hooks, wanted);
    return NULL;
}

/* Arms the gate in the imports of some libraries. Returns NULL, or the reason for a failure. */
static const char *arm_imports(enum part part, const struct import *imports, size_t count,
                               bool (*wants)(const char *path), const char *unknown)
{
    struct import_job job = {part, imports, count, 0, NULL};
    if (!is_glibc_malloc()) {
        return "Another memory allocator than glibc's is loaded.";
    }
    patch_libraries(&job, wants);
    if (job.problem == NULL && job.patched == 0) {
        job.problem = unknown;
    }
    if (job.problem != NULL) {
        restore(part, NULL);
    }
    return job.problem;
}

/* --- Fourier transforms of NumPy and SciPy. They check the result of malloc(), so a refusal raises
 * MemoryError. */

static void *fourier_malloc(size_t size)
{
    void *block;
    if (ask(size, HEADER_BYTES, NUMPY, &block) == GRANT) {
        block = malloc(size);
        note_grant(block, size, false);
    }
    return block;
}

static const struct import FOURIER_IMPORTS[] = {{"malloc", (void *)fourier_malloc, NULL}};

static bool is_fourier(const char *path)
{
    return strstr(path, "/numpy/fft/_pocketfft_") != NULL ||
           strstr(path, "/scipy/fft/_pocketfft/pypocketfft.") != NULL;
}

/* Arms the gate in Fourier transforms. Returns NULL, or the reason for a failure. */
EXPORT const char *tfguard_arm_fourier(void)
{
    return arm_imports(PART_FOURIER, FOURIER_IMPORTS, LENGTH(FOURIER_IMPORTS), is_fourier,
                       "These Fourier transforms are built in an unknown way.");
}

/* --- pandas. Its parser checks the result of realloc(). Its hash tables do not, also those in
 * parsers.so, and are not patched: a refusal would be a crash, and on disk they are too slow,
 * because they are read in random order. Before pandas 2 the parser is in the same library as they,
 * and is not patched. */

static void *pandas_realloc(void *block, size_t size)
{
    return may_resize(block, size, PANDAS) ? realloc(block, size) : NULL;
}

static const struct import PANDAS_IMPORTS[] = {{"realloc", (void *)pandas_realloc, NULL}};

static bool is_pandas_parser(const char *path)
{
    return strstr(path, "/pandas/_libs/pandas_parser.") != NULL;
}

/* Arms the gate in pandas. Returns NULL, or the reason for a failure. */
EXPORT const char *tfguard_arm_pandas(void)
{
    return arm_imports(PART_PANDAS, PANDAS_IMPORTS, LENGTH(PANDAS_IMPORTS), is_pandas_parser,
                       "This version of pandas is built in an unknown way.");
}

/* --- scikit-learn. The builders of its trees double an array of nodes with realloc() and check the
 * result. They run in threads without the GIL, where no exception can stop them. What was granted is
 * filled within seconds or minutes, so that each request counts what all have still to fill. */

static void *sklearn_realloc(void *block, size_t size)
{
    if (!may_resize(block, size, SKLEARN)) {
        return NULL;
    }
    bool grows = block == NULL || size > malloc_usable_size(block);
    void *moved = realloc(block, size);
    if (grows) {
        note_slow_grant(moved, size);
    }
    return moved;
}

static const struct import SKLEARN_IMPORTS[] = {{"realloc", (void *)sklearn_realloc, NULL}};

static bool is_sklearn_trees(const char *path)
{
    return strstr(path, "/sklearn/tree/_utils.") != NULL;
}

/* Arms the gate in scikit-learn. Returns NULL, or the reason for a failure. */
EXPORT const char *tfguard_arm_sklearn(void)
{
    return arm_imports(PART_SKLEARN, SKLEARN_IMPORTS, LENGTH(SKLEARN_IMPORTS), is_sklearn_trees,
                       "This version of scikit-learn is built in an unknown way.");
}

/* ---------------------------------------------------------------------------------------------
 * 12. Giving back memory that allocators hold although it is free
 *
 * malloc keeps what was freed between blocks in use: a shuffle of images leaves hundreds of MiB. The
 * system can use it after malloc_trim(), which takes up to 0.2 s. So this is done only when a stop
 * or a refusal would follow, and again only after memory was used again.
 *
 * TensorFlow's pool: freed tensors stay resident in the pool, so after a stop no memory would be available although it
 * is unused. This code allocates each free chunk, largest first, while the pool must not grow,
 * drops its pages, and frees it again. The pool works as before, and gets new pages on demand.
 */

static void *take_free_chunk(void *pool, size_t bytes)
{
    static const struct allocation_attributes once = {.retry_on_failure = false};
    return pool_class.allocate_quietly != NULL
               ? pool_class.allocate_quietly(pool, 64, bytes, false, 0)
               : pool_class.allocate_with(pool, 64, bytes, &once);
}

static int64_t release_free_chunks(void *pool)
{
    static void *chunks[4096];
    size_t count = 0;
    int64_t released = 0;
    for (size_t size = (size_t)1 << 32; size >= LARGE_BYTES; size /= 2) {
        for (size_t quarters = 4; quarters >= (size > LARGE_BYTES ? 3 : 4); quarters--) {
            size_t bytes = size / 4 * quarters;
            char *chunk;
            while (count < LENGTH(chunks) &&
                   (chunk = take_free_chunk(pool, bytes)) != NULL) {
                /* The pool does not split a chunk that is a little larger than requested. */
                size_t whole = pool_class.allocated_size(pool, chunk);
                uintptr_t start = round_up((uintptr_t)chunk, page_bytes);
                uintptr_t end = ((uintptr_t)chunk + whole) & ~(page_bytes - 1);
                chunks[count++] = chunk;
                if (end > start) {
                    int64_t present = (int64_t)(end - start) -
                                      at_least_0(untouched_bytes((void *)start, end - start));
                    released +=
                        madvise((void *)start, end - start, MADV_DONTNEED) == 0 ? present : 0;
                }
            }
        }
    }
    while (count > 0) {
        pool_class.deallocate(pool, chunks[--count]);
    }
    return released;
}

/* Returns the bytes whose pages were dropped. */
static int64_t release_pool(void)
{
    static pthread_mutex_t only_one = PTHREAD_MUTEX_INITIALIZER;
    int64_t released = 0;
    if (atomic_load(&tensorflow_hooks) == NO_HOOKS || pthread_mutex_trylock(&only_one) != 0) {
        return 0;
    }
    self.releasing_pool = true;
    atomic_store(&release_us, now_us());
    /* A thread that has just passed wait_for_release() gets its memory first. */
    static const struct timespec pause = {0, 3000000};
    nanosleep(&pause, NULL);
    for (size_t i = 0; i < LENGTH(pools); i++) {
        if (atomic_load(&pools[i].kind) == HOST_POOL) {
            released += release_free_chunks(atomic_load(&pools[i].address));
        }
    }
    atomic_store(&release_us, 0);
    self.releasing_pool = false;
    pthread_mutex_unlock(&only_one);
    return released;
}

/* Other allocators, if one is preloaded. Source: malloc_extension_c.h of gperftools; jemalloc(3),
 * where arena 4096 means all. */
static void (*release_tcmalloc)(void);
static int (*control_jemalloc)(const char *, void *, size_t *, void *, size_t);

/* Fields of mallinfo2(3), glibc 2.33 and newer. */
struct malloc_facts {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
static struct malloc_facts (*get_mallinfo)(void);

static void find_allocators(void)
{
    *(void **)&get_mallinfo = dlsym(RTLD_DEFAULT, "mallinfo2");
    *(void **)&release_tcmalloc = dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
    *(void **)&control_jemalloc = dlsym(RTLD_DEFAULT, "mallctl");
}

static _Atomic int64_t gave_back_us;        /* when it last ended; 0: never */
static _Atomic int64_t next_giving_back_us; /* not again before */
static _Atomic int64_t giving_back_us;      /* when it began that is under way; 0 without one */
static _Atomic int64_t most_available;      /* since it last ended */
static const int64_t GIVE_BACK_AGAIN_US = 500000, GIVING_BACK_LIMIT_US = 2000000;
static const int64_t TIMES_ITS_COST = 10; /* at most a tenth of the time */

static _Atomic int64_t free_after; /* in malloc, whether resident or not */

static int64_t free_in_malloc(void)
{
    return get_mallinfo == NULL ? 0 : (int64_t)get_mallinfo().fordblks;
}

/* Returns the bytes of the pool. From any thread. */
static int64_t give_back(void)
{
    int64_t began = now_us();
    atomic_store(&next_giving_back_us, began + GIVING_BACK_LIMIT_US);
    int64_t released = release_pool();
    malloc_trim(0);
    if (release_tcmalloc != NULL) {
        release_tcmalloc();
    }
    if (control_jemalloc != NULL) {
        control_jemalloc("arena.4096.purge", NULL, NULL, NULL, 0);
    }
    int64_t now = now_us();
    atomic_store(&free_after, free_in_malloc());
    atomic_store(&most_available, 0);
    atomic_store(&gave_back_us, now);
    atomic_store(&next_giving_back_us,
                 now + larger(GIVE_BACK_AGAIN_US, TIMES_ITS_COST * (now - began)));
    return released;
}

static bool is_giving_back_due(int64_t now)
{
    return now >= atomic_load(&next_giving_back_us);
}

static bool is_giving_back(int64_t now)
{
    int64_t began = atomic_load(&giving_back_us);
    return began != 0 && now - began < GIVING_BACK_LIMIT_US;
}

static void note_available(int64_t available)
{
    if (available > atomic_load(&most_available)) {
        atomic_store(&most_available, available);
    }
}

static void *run_giving_back(void *unused)
{
    (void)unused;
    give_back();
    atomic_store(&giving_back_us, 0);
    return NULL;
}

static int start_thread(pthread_t *thread, void *(*run)(void *), const char *name);

/* False if there is certainly less to give back. The pool does not say. */
static bool may_hold_free_memory(double bytes)
{
    return atomic_load(&tensorflow_hooks) != NO_HOOKS || get_mallinfo == NULL ||
           release_tcmalloc != NULL || control_jemalloc != NULL ||
           (double)free_in_malloc() >= bytes;
}

/* False if that cannot help: too little memory was used since the last time. Holds state_lock. */
static bool start_giving_back(int64_t available, double level, int64_t now)
{
    pthread_t thread;
    if (!is_giving_back_due(now) || !may_hold_free_memory(level / 2) ||
        (atomic_load(&gave_back_us) != 0 &&
         atomic_load(&most_available) - available < levels.stop_bytes)) {
        return false;
    }
    atomic_store(&giving_back_us, now);
    if (start_thread(&thread, run_giving_back, "tfguard-return") != 0) {
        atomic_store(&giving_back_us, 0);
        return false;
    }
    pthread_detach(thread);
    return true;
}

/* ---------------------------------------------------------------------------------------------
 * 13. Start, stop, fork
 */

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
        /* It runs Python code, so the signal suffices: section 10. */
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

/* Returns free memory of malloc and of TensorFlow's pool to the system. Result: bytes of the pool.
 *
 *     if_due  only if that was not done a moment ago, or much was freed since */
EXPORT int64_t tfguard_give_back(int if_due)
{
    const int64_t much = 16 * MIB;
    bool is_due = !if_due || is_giving_back_due(now_us()) ||
                  free_in_malloc() > atomic_load(&free_after) + much;
    return is_due ? give_back() : 0;
}

static void before_fork(void)
{
    pthread_mutex_lock(&disk_lock); /* the child needs a consistent table */
}

static void after_fork(void)
{
    pthread_mutex_unlock(&disk_lock);
}

/* The child shares the file with its parent. A private mapping hides the child's writes from the
 * parent. Unlike with ordinary memory, later writes of the parent appear in the child, in pages
 * that the child has not written. */
static void unshare_disk_blocks(void)
{
    if (atomic_load(&disk_block_count) == 0) {
        return;
    }
    update_disk_blocks();
    for (size_t i = 0; i < LENGTH(disk_blocks); i++) {
        struct disk_block *block = &disk_blocks[i];
        if (block->start != NULL && owns_descriptor(block)) {
            mmap(block->start, block->mapped, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, block->fd, 0);
        }
    }
}

static void in_child(void)
{
    static const pthread_mutex_t new_lock = PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&armed, false);
    atomic_store(&interrupt_wanted, false);
    atomic_store(&disk_armed, false);
    atomic_store(&giving_back_us, 0);
    atomic_store(&slow_until_us, 0);
    atomic_store(&held_until_us, 0);
    is_running = false;
    unshare_disk_blocks();
    /* A thread that does not exist in the child may have held any of these. */
    state_lock = grants_lock = disk_lock = new_lock;
    groups_lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    memset(grants, 0, sizeof grants);
    memset(&self, 0, sizeof self);
}

/* The new thread inherits the mask, so no signal handler of the program runs in it. Returns 0 or an
 * error number. */
static int start_thread(pthread_t *thread, void *(*run)(void *), const char *name)
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

/* Starts the sampler thread, disarmed. Call from the thread that must receive the signal. Returns 0
 * or an error number. */
EXPORT int tfguard_start(int wake, int signal_number)
{
    static bool is_prepared;
    if (is_running) {
        return EALREADY;
    }
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    wake_fd = wake;
    stop_signal = signal_number;
    main_thread = pthread_self();
    main_thread_id = (pid_t)syscall(SYS_gettid);
    pthread_getcpuclockid(main_thread, &main_cpu_clock);
    ended = false;
    if (!is_prepared) {
        void *frames[4];
        backtrace(frames,
                  LENGTH(frames)); /* the first call loads a library: not inside malloc */
        pthread_atfork(before_fork, after_fork, in_child);
        find_allocators();
        is_prepared = true;
    }
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&state_changed, &clock);
    pthread_condattr_destroy(&clock);

    int failed = start_thread(&sampler_thread, run_sampler, "tfguard-memory");
    is_running = failed == 0;
    return failed;
}

/* Stops the thread. The hooks stay in place, disarmed; tfguard_restore() removes them. */
EXPORT void tfguard_stop(void)
{
    tfguard_disarm();
    if (!is_running) {
        return;
    }
    pthread_mutex_lock(&state_lock);
    ended = true;
    pthread_cond_signal(&state_changed);
    pthread_mutex_unlock(&state_lock);
    pthread_join(sampler_thread, NULL);
    is_running = false;
    wake_fd = -1;
    pthread_rwlock_wrlock(&groups_lock);
    drop_groups();
    drop_file(&meminfo);
    pthread_rwlock_unlock(&groups_lock);
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
