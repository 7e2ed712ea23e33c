/*
 * A thread samples the available memory while a cell runs, without the GIL. Too little is a trip: it
 * signals the main thread until that has raised its exception. The thread sleeps while no cell runs.
 */
#include "disk.h"
#include "give_back.h"
#include "memory.h"
#include "slow.h"
#include "start.h"
#include "watch.h"

static const int64_t SHORTEST_US = 1000, LONGEST_US = 50000, NEAR_LONGEST_US = 10000,
                     UNDELIVERED_US = 2000;
static const int64_t SIGNAL_AGAIN_US = 10000;    /* between two signals to the main thread */
static const int64_t INTERRUPT_AFTER_US = 60000; /* CPU time without a reaction: python.c */
static const int64_t FALLEN_AFTER_US =
    10000; /* user code caught the exception and continues to fill: */
static const double FALLEN_FRACTION =
    0.25; /*   stop it again after a fall by this fraction of the level */
static const int PRIORITY = -10; /* of the thread */
static const int MOST_CHILDREN = 64, GENERATIONS = 8;
static const int64_t ADDED_AGAIN_US = 50000, STEADY_ADDED_AGAIN_US = 1000000;
static const double STEADY_FRACTION = 1.0 / 16; /* of the level: a smaller fall is none */
static const double SAMPLES_AHEAD = 6; /* until the level is reached, at the current fill rate */

atomic_bool armed;
atomic_bool tripped, delivered;
atomic_bool interrupt_wanted;
atomic_bool heard;
atomic_int trip_count;
_Atomic int64_t trip_available, trip_us, trip_added, heard_cpu_us, lowest_available;
static _Atomic int64_t delivered_us, judged_available, delivered_available; /* minus bytes on disk */
static _Atomic int64_t last_available, last_sample_us;
_Atomic double fill_rate;
_Atomic int64_t refused[CALLER_COUNT], interrupted, last_refused, last_refused_available;
_Atomic int64_t spilled_bytes, spilled_count;

struct levels levels;
_Atomic int64_t reserve_bytes, limit_bytes, plenty_bytes;
_Atomic int64_t known_available, known_us;

int stop_signal;
static sem_t trips; /* counts trips that nobody has waited for; also raised at the end */
pid_t main_thread_id;
pthread_t main_thread;
clockid_t main_cpu_clock;

pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t state_changed;
static bool ended;
bool is_running;
static pthread_t watching_thread;

static int64_t disk_bytes_at_start; /* of the cell */
static int64_t signal_us;
static int64_t start_available, start_own; /* at the first sample of the cell */
static int64_t added, added_us;            /* by this process since then; when that was read */
static int64_t added_available;            /* at that time */

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
int64_t main_cpu_us(void)
{
    struct timespec used = {0, 0};
    clock_gettime(main_cpu_clock, &used);
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
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
    sem_post(&trips);
    atomic_store(&trip_added, added);
    send_signal(now);
    read_added(available, now); /* for the message, if the main thread takes longer */
    atomic_store(&trip_added, added);
}

/* Trip because memory was granted that is not available. From any thread. */
void trip_now(void)
{
    pthread_mutex_lock(&state_lock);
    if (atomic_load(&armed) && !atomic_load(&tripped)) {
        trip(tfguard_available(), now_us());
    }
    pthread_mutex_unlock(&state_lock);
}

/* Trip because code ignores refusals, and would go on without end. Two trips are counted: the next
 * refusal must not count as the stop. */
void trip_ignored(void)
{
    pthread_mutex_lock(&state_lock);
    if (atomic_load(&armed) && (!atomic_load(&tripped) || atomic_load(&delivered))) {
        if (atomic_load(&trip_count) == 0) {
            atomic_store(&trip_count, 1);
        }
        trip(tfguard_available(), now_us());
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
    int64_t available = tfguard_available(), now = now_us(), before = atomic_load(&last_sample_us);
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

static void *run_watching(void *unused)
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
    note_start_of_cell();
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

/* Starts the thread, disarmed. Returns 0 or an error number. */
int start_watching(void)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&state_changed, &clock);
    pthread_condattr_destroy(&clock);
    sem_init(&trips, 0, 0);
    ended = false;
    int failed = start_thread(&watching_thread, run_watching, "tfguard-memory");
    is_running = failed == 0;
    return failed;
}

void end_watching(void)
{
    pthread_mutex_lock(&state_lock);
    ended = true;
    pthread_cond_signal(&state_changed);
    pthread_mutex_unlock(&state_lock);
    pthread_join(watching_thread, NULL);
    is_running = false;
    sem_post(&trips);
}

/* Waits for the next trip. False at the end. Call without the GIL. */
EXPORT bool tfguard_wait_for_trip(void)
{
    while (sem_wait(&trips) != 0 && errno == EINTR) {
    }
    return is_running;
}
