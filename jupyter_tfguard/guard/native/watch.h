/* The state of the running cell: set by the thread that samples, read by the hooks. */
#pragma once
#include "base.h"

struct levels { /* levels.py */
    int64_t stop_bytes, stop_cap_bytes, reserve_bytes, total_bytes;
    double rate_seconds, own_fraction;
};

/* Who requests memory; decide.c decides by it. */
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

static const int64_t RECOVERED_TIMES =
    4; /* of the level: the stop is over, the cell uses less memory now */

extern atomic_bool armed; /* a cell runs and may be stopped; each hook tests only this */
extern atomic_bool tripped, delivered;
extern atomic_bool interrupt_wanted; /* python.c */
extern atomic_bool heard;            /* by the main thread, since the trip */
extern atomic_int trip_count;
extern _Atomic int64_t trip_available, trip_us, trip_added, heard_cpu_us, lowest_available;
extern _Atomic double fill_rate; /* bytes per second */
extern _Atomic int64_t refused[CALLER_COUNT], interrupted, last_refused, last_refused_available;
extern _Atomic int64_t spilled_bytes, spilled_count;

extern struct levels levels; /* for the thread that samples; the gate also reads: */
extern _Atomic int64_t reserve_bytes, limit_bytes, plenty_bytes;
/* The newest reading, by that thread or the gate. */
extern _Atomic int64_t known_available, known_us;

extern int stop_signal;
extern pid_t main_thread_id;
extern pthread_t main_thread;
extern clockid_t main_cpu_clock;

extern pthread_mutex_t state_lock; /* protects arming and tripping */
extern bool is_running;            /* the thread that samples, in this process */

int64_t main_cpu_us(void);
void trip_now(void);
void trip_ignored(void);
int start_watching(void);
void end_watching(void);
void tfguard_disarm(void);
void tfguard_delivered(void);
