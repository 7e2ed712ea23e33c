/*
 * Disk-backed blocks.
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
 *   - A forked child would share the pages with its parent. So it maps them privately (disk_in_child).
 */
#include "disk.h"
#include "process.h"
#include "watch.h"

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
pthread_mutex_t disk_lock = PTHREAD_MUTEX_INITIALIZER;

atomic_bool disk_armed;
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
void *disk_allocate(size_t size, size_t alignment)
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
int64_t disk_bytes_written(void)
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
enum growth grow_on_disk(const char *address, size_t size)
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

/* The child shares the file with its parent. A private mapping hides the child's writes from the
 * parent. Unlike with ordinary memory, later writes of the parent appear in the child, in pages
 * that the child has not written. */
void disk_in_child(void)
{
    atomic_store(&disk_armed, false);
    disk_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
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
