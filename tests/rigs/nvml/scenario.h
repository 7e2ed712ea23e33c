/* What the stand-in for NVIDIA's management library shows, as a text file says it. See scenario.c for the lines. */
#ifndef TFGUARD_SCENARIO_H
#define TFGUARD_SCENARIO_H

enum { MAX_CARDS = 16, MAX_INSTANCES = 8, MAX_PROCESSES = 1024, MAX_EVENTS = 256, MAX_ACTIONS = 64, MAX_NAMES = 256 };
enum { TEXT = 96, WHOLE = -1, EVERY = -1 };

/* A card, or an instance of a card in MIG mode: what a handle points to. It outlives every reading of the file. */
typedef struct unit { int card, instance; } *nvmlDevice_t;

/* The numbers of a card, named in the file as here, in NVML's own units. */
enum key {
    MEMORY_TOTAL, MEMORY_RESERVED, MEMORY_USED, UTILIZATION, TEMPERATURE, SLOWDOWN, SHUTDOWN, POWER, POWER_LIMIT,
    THROTTLE, ECC_UNCORRECTED, REMAPPED_UNCORRECTED, REMAPPED_PENDING, REMAPPED_FAILED, RETIRED_PENDING, MIG, CAPABILITY,
    COUNTS_RESERVED, NUMBERS
};

struct facts {
    int present;
    char name[TEXT], uuid[TEXT], bus[TEXT];
    char known[NUMBERS];
    unsigned long long number[NUMBERS];
};
struct process { int card, instance; unsigned int pid; unsigned long long bytes; };
struct event { int card; unsigned long long xid; };
struct name { unsigned int pid; char text[TEXT]; };
struct action {
    char call[TEXT]; /* "*" for every call */
    enum { FAIL, HANG, CRASH } does;
    int code, after, card;
};

struct scenario {
    char driver[TEXT], record[512];
    int cuda, cards, processes, events, actions, names;
    struct facts card[MAX_CARDS], instance[MAX_CARDS][MAX_INSTANCES];
    struct process process[MAX_PROCESSES];
    struct event event[MAX_EVENTS];
    struct action action[MAX_ACTIONS];
    struct name name[MAX_NAMES];
};

/* Read `path` if it has changed since `*stamp`; 1 when `found` is new. */
int read_scenario(const char *path, struct scenario *found, long long *stamp);

#endif
