/*
 * Giving back memory that allocators hold although it is free.
 *
 * malloc keeps what was freed between blocks in use: a shuffle of images leaves hundreds of MiB. The
 * system can use it after malloc_trim(), which takes up to 0.2 s. So this is done only when a stop
 * or a refusal would follow, and again only after memory was used again.
 *
 * TensorFlow's pool: freed tensors stay resident in the pool, so after a stop no memory would be available although it
 * is unused. This code allocates each free chunk, largest first, while the pool must not grow,
 * drops its pages, and frees it again. The pool works as before, and gets new pages on demand.
 */
#include "decide.h"
#include "give_back.h"
#include "grants.h"
#include "pool.h"
#include "start.h"
#include "watch.h"

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

void find_allocators(void)
{
    *(void **)&get_mallinfo = dlsym(RTLD_DEFAULT, "mallinfo2");
    *(void **)&release_tcmalloc = dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
    *(void **)&control_jemalloc = dlsym(RTLD_DEFAULT, "mallctl");
}

static _Atomic int64_t gave_back_us;        /* when it last ended; 0: never */
static _Atomic int64_t next_giving_back_us; /* not again before */
_Atomic int64_t giving_back_us;      /* when it began that is under way; 0 without one */
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

bool is_giving_back(int64_t now)
{
    int64_t began = atomic_load(&giving_back_us);
    return began != 0 && now - began < GIVING_BACK_LIMIT_US;
}

void note_available(int64_t available)
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

/* False if there is certainly less to give back. The pool does not say. */
static bool may_hold_free_memory(double bytes)
{
    return atomic_load(&tensorflow_hooks) != NO_HOOKS || get_mallinfo == NULL ||
           release_tcmalloc != NULL || control_jemalloc != NULL ||
           (double)free_in_malloc() >= bytes;
}

/* False if that cannot help: too little memory was used since the last time. Holds state_lock. */
bool start_giving_back(int64_t available, double level, int64_t now)
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
