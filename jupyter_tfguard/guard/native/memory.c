/*
 * Available memory: the minimum over the machine and each limited group.
 *
 * File cache and swap count as available: the system uses both before it kills.
 * memory/available.py does the same in Python.
 */
#include "memory.h"

/* Files are open only while they are read: user code may need all descriptors, or close all
 * (daemonize). That costs 5 microseconds a file. */
struct group {
    int version;
    char *folder;
};

/* Names of its files, by version. */
static const struct {
    const char *limit, *used, *swap_limit, *swap_used;
} names[] = {
    [1] = {"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.memsw.limit_in_bytes",
           "memory.memsw.usage_in_bytes"},
    [2] = {"memory.max", "memory.current", "memory.swap.max", "memory.swap.current"},
};

static struct group groups[16];
static int group_count;
pthread_rwlock_t groups_lock = PTHREAD_RWLOCK_INITIALIZER;

static const int64_t NO_LIMIT = (int64_t)1 << 62;

static bool read_file(const char *folder, const char *name, char *text, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (got <= 0) {
        return false;
    }
    text[got] = 0;
    return true;
}

/* The number in a file; NO_LIMIT for "max"; -1 if unreadable. */
static int64_t read_number(const char *folder, const char *name)
{
    char text[64];
    if (!read_file(folder, name, text, sizeof text)) {
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

static int64_t group_available(const struct group *group, int64_t free_swap)
{
    char text[8192];
    const char *folder = group->folder;
    int64_t limit = read_number(folder, names[group->version].limit);
    if (limit < 0 || limit == NO_LIMIT) {
        return INT64_MAX;
    }
    int64_t used = read_number(folder, names[group->version].used);
    if (used < 0) {
        return INT64_MAX;
    }
    int64_t cache = 0;
    if (read_file(folder, "memory.stat", text, sizeof text)) {
        bool first = group->version == 1;
        int64_t held = at_least_0(field(text, first ? "total_rss" : "anon")) +
                       at_least_0(field(text, first ? "total_shmem" : "shmem"));
        cache = at_least_0(field(text, first ? "total_active_file" : "active_file")) +
                at_least_0(field(text, first ? "total_inactive_file" : "inactive_file"));
        /* The counters include a deleted file for a while; the memory in use does not. */
        cache = at_least_0(smaller(cache, used - held));
    }
    int64_t left = limit - used + cache;
    int64_t swap_limit = free_swap ? read_number(folder, names[group->version].swap_limit) : -1;
    if (swap_limit < 0) {
        return left;
    }
    int64_t swap_used = at_least_0(read_number(folder, names[group->version].swap_used));
    if (group->version == 1) { /* version 1 counts both together */
        int64_t both = swap_limit == NO_LIMIT ? NO_LIMIT : swap_limit - swap_used + cache;
        return larger(left, smaller(left + free_swap, both));
    }
    int64_t allowed = swap_limit == NO_LIMIT ? NO_LIMIT : swap_limit - swap_used;
    return left + at_least_0(smaller(free_swap, allowed));
}

/* Bytes that can still be used before the system kills a process; INT64_MAX if unknown. */
EXPORT int64_t tfguard_available(void)
{
    char text[2048];
    int64_t available = INT64_MAX, free_swap = 0;
    int saved = errno;
    pthread_rwlock_rdlock(&groups_lock);
    if (read_file("/proc", "meminfo", text, sizeof text)) {
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
EXPORT int64_t tfguard_total(void)
{
    char text[2048];
    int64_t total = INT64_MAX;
    pthread_rwlock_rdlock(&groups_lock);
    if (read_file("/proc", "meminfo", text, sizeof text)) {
        int64_t machine = field(text, "MemTotal");
        total = machine >= 0 ? machine * KIB : total;
    }
    for (int i = 0; i < group_count; i++) {
        int64_t limit = read_number(groups[i].folder, names[groups[i].version].limit);
        total = limit >= 0 ? smaller(total, limit) : total;
    }
    pthread_rwlock_unlock(&groups_lock);
    return total;
}

/* Read these groups from now on. Call while disarmed. */
EXPORT void tfguard_use_groups(int count, const int *versions, const char *const *folders)
{
    pthread_rwlock_wrlock(&groups_lock);
    while (group_count > 0) {
        free(groups[--group_count].folder);
    }
    for (int i = 0; i < count && group_count < (int)LENGTH(groups); i++) {
        groups[group_count++] = (struct group){versions[i], strdup(folders[i])};
    }
    pthread_rwlock_unlock(&groups_lock);
}

/* Memory that a process and its children use and that is no file, in bytes; 0 if unknown. A page
 * that a child shares with its parent counts twice. Source: proc_pid_status(5), proc_pid_task(5).
 *
 *     most        children that may still be read
 *     generations below this process */
int64_t used_by(const char *folder, int *most, int generations)
{
    char text[4096], path[PATH_MAX];
    int64_t sum = 0;
    if (read_file(folder, "status", text, sizeof text)) {
        sum = KIB * (at_least_0(field(text, "RssAnon")) + at_least_0(field(text, "RssShmem")) +
                     at_least_0(field(text, "VmSwap")));
    }
    snprintf(path, sizeof path, "%s/task", folder);
    DIR *threads = generations > 0 ? opendir(path) : NULL;
    for (struct dirent *thread; threads != NULL && (thread = readdir(threads)) != NULL;) {
        snprintf(path, sizeof path, "%s/task/%s", folder, thread->d_name);
        char *at = text, *end = text;
        bool is_read = read_file(path, "children", text, sizeof text);
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
    }
    if (threads != NULL) {
        closedir(threads);
    }
    return sum;
}
