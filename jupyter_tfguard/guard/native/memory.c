/*
 * Available memory: the minimum over the machine and each limited group.
 *
 * File cache and swap count as available: the system uses both before it kills.
 * memory/available.py does the same in Python.
 */
#include "memory.h"

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
pthread_rwlock_t groups_lock = PTHREAD_RWLOCK_INITIALIZER;

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
EXPORT int64_t tfguard_available(void)
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
EXPORT int64_t tfguard_total(void)
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
int64_t used_by(const char *folder, int *most, int generations)
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

void forget_groups(void)
{
    pthread_rwlock_wrlock(&groups_lock);
    drop_groups();
    drop_file(&meminfo);
    pthread_rwlock_unlock(&groups_lock);
}
