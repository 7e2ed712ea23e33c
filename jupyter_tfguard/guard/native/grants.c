/*
 * Granted, but not touched yet.
 *
 * A block uses memory only once it is filled. If 1.5 GB are available and two threads request 1 GB
 * each, only one request may be granted. mincore() counts the pages that are not resident yet, so
 * free() needs no hook.
 */
#include "grants.h"
#include "watch.h"

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
int64_t untouched_bytes(const void *block, size_t size)
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

void note_grant(void *block, size_t size, bool may_wait)
{
    note(block, size, may_wait, false);
}

void note_slow_grant(void *block, size_t size)
{
    note(block, size, false, true);
}

static bool counts(const struct grant *grant, enum which which)
{
    return grant->block != NULL && (which == ALL_GRANTS || !grant->may_wait ||
                                    !pthread_equal(grant->thread, pthread_self()));
}

/* Bytes granted but not used yet. Counts pages only if that matters: if all grants together would
 * not fit into `room`. */
int64_t promised_bytes(int64_t room, enum which which)
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

void grants_in_child(void)
{
    grants_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    memset(grants, 0, sizeof grants);
}
