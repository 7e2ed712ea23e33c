/* A stand-in for NVIDIA's management library, for machines without a GPU: NVML's public C interface, with its
 * structures and their versions. What it shows stands in the file that TFGUARD_NVML_SCENARIO names (see scenario.c), and
 * the file may change while it runs.
 *
 * Source of the interface: nvml.h of CUDA 13 (NVIDIA/go-nvml, gen/nvml/nvml.h).
 */
#include "scenario.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int nvmlReturn_t;
enum {
    OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15, LIB_RM_VERSION_MISMATCH = 18, ARGUMENT_VERSION_MISMATCH = 25,
};

typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } nvmlMemory_v2_t;
typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gpu_instance, compute_instance; } nvmlProcessInfo_t;
typedef struct { char legacy[16]; unsigned int domain, bus, device, id, subsystem; char address[32]; } nvmlPciInfo_t;
typedef union { double d; unsigned int ui; unsigned long ul; unsigned long long ull; } nvmlValue_t;
typedef struct {
    uint32_t field, scope;
    int64_t timestamp, latency;
    int type, result;
    nvmlValue_t value;
} nvmlFieldValue_t;
typedef struct events { int told, used; unsigned int cards; } *nvmlEventSet_t;
typedef struct { nvmlDevice_t device; unsigned long long type, data; unsigned int gpu_instance, compute_instance; } nvmlEventData_t;

#define VERSION(type, number) ((unsigned int)(sizeof(type) | (number) << 24))
enum { XID_EVENT = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct scenario now;
static struct unit units[MAX_CARDS][1 + MAX_INSTANCES];
static struct events sets[8];

/* How often each call was made; the actions count from here. */
static int count(const char *call) {
    static struct { const char *call; int count; } made[64];
    for (int i = 0; i < 64; i++) {
        if (!made[i].call) made[i].call = call;
        if (!strcmp(made[i].call, call)) return made[i].count++;
    }
    return 0;
}

static void record(const char *call, nvmlDevice_t device) {
    char line[TEXT + 32];
    int length = snprintf(line, sizeof line, device ? "%s %d\n" : "%s\n", call, device ? device->card : 0);
    int file = now.record[0] ? open(now.record, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (file < 0) return;
    if (write(file, line, (size_t)length) < 0) abort();
    close(file);
}

/* Look at the file, at most every 5 ms: a look is a call of the system, and calls are to be cheap. */
static void refresh(void) {
    static long long stamp, looked;
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    long long time = at.tv_sec * 1000LL + at.tv_nsec / 1000000;
    if (looked && time - looked < 5) return;
    looked = time;
    read_scenario(getenv("TFGUARD_NVML_SCENARIO"), &now, &stamp);
}

static struct facts *facts_of(nvmlDevice_t device) {
    struct facts *found = device->instance == WHOLE ? &now.card[device->card] : &now.instance[device->card][device->instance];
    return found->present ? found : NULL;
}

/* Begin a call: with the lock held, and OK unless the scenario says otherwise of it. */
static nvmlReturn_t begin(const char *call, nvmlDevice_t device) {
    pthread_mutex_lock(&lock);
    refresh();
    record(call, device);
    int made = count(call);
    for (int i = 0; i < now.actions; i++) {
        struct action *a = &now.action[i];
        if (made < a->after) continue;
        if (strcmp(a->call, "*") && strcmp(a->call, call)) continue;
        if (a->card != EVERY && (!device || device->card != a->card)) continue;
        if (a->does == CRASH) abort();
        if (a->does == FAIL) return a->code;
        pthread_mutex_unlock(&lock); /* it hangs; the other thread's calls go on */
        for (;;) pause();
    }
    return !device ? OK : facts_of(device) ? OK : device->instance == WHOLE ? GPU_IS_LOST : INVALID_ARGUMENT;
}

static nvmlReturn_t end(nvmlReturn_t result) {
    pthread_mutex_unlock(&lock);
    return result;
}

#define BEGIN(device) do { nvmlReturn_t bad = begin(__func__, device); if (bad) return end(bad); } while (0)

static nvmlReturn_t get(nvmlDevice_t device, enum key key, unsigned long long *value) {
    struct facts *facts = facts_of(device);
    *value = facts->number[key];
    return facts->known[key] ? OK : NOT_SUPPORTED;
}

static nvmlReturn_t put(nvmlDevice_t device, enum key key, unsigned int *value) {
    unsigned long long found;
    nvmlReturn_t result = get(device, key, &found);
    if (!result) *value = (unsigned int)found;
    return end(result);
}

static nvmlReturn_t put_text(const char *found, char *text, unsigned int length) {
    if (!*found) return end(NOT_SUPPORTED);
    if (strlen(found) >= length) return end(INSUFFICIENT_SIZE);
    strcpy(text, found);
    return end(OK);
}

/* The library and the driver */

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { (void)flags; BEGIN(NULL); return end(OK); }
nvmlReturn_t nvmlShutdown(void) { BEGIN(NULL); return end(OK); }

const char *nvmlErrorString(nvmlReturn_t result) {
    return result == LIB_RM_VERSION_MISMATCH ? "Driver/library version mismatch"
           : result == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "An error of the stand-in";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned int length) { BEGIN(NULL); return put_text(now.driver, text, length); }

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    BEGIN(NULL);
    *version = now.cuda;
    return end(now.cuda ? OK : NOT_SUPPORTED);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *text, unsigned int length) {
    BEGIN(NULL);
    for (int i = 0; i < now.names; i++) if (now.name[i].pid == pid) return put_text(now.name[i].text, text, length);
    return end(NOT_FOUND);
}

/* Cards and instances */

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) { BEGIN(NULL); *count = (unsigned int)now.cards; return end(OK); }

static nvmlReturn_t handle(unsigned int card, int instance, nvmlDevice_t *device) {
    *device = &units[card][1 + instance];
    (*device)->card = (int)card, (*device)->instance = instance;
    return facts_of(*device) ? OK : instance == WHOLE ? GPU_IS_LOST : NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    units[index % MAX_CARDS][0] = (struct unit){(int)index, WHOLE};
    if (index >= MAX_CARDS) return INVALID_ARGUMENT;
    BEGIN(&units[index][0]);
    return end(handle(index, WHOLE, device));
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) { BEGIN(device); *index = (unsigned int)device->card; return end(OK); }
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned int length) { BEGIN(device); return put_text(facts_of(device)->uuid, text, length); }
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *text, unsigned int length) { BEGIN(device); return put_text(facts_of(device)->name, text, length); }

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info) {
    BEGIN(device);
    if (!*facts_of(device)->bus) return end(NOT_SUPPORTED);
    memset(info, 0, sizeof *info);
    sscanf(facts_of(device)->bus, "%x:%x:%x", &info->domain, &info->bus, &info->device);
    snprintf(info->legacy, sizeof info->legacy, "%04X:%02X:%02X.0", info->domain & 0xFFFF, info->bus & 0xFF, info->device & 0xFF);
    snprintf(info->address, sizeof info->address, "%08X:%02X:%02X.0", info->domain, info->bus, info->device);
    return end(OK);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    unsigned int found = 0;
    BEGIN(device);
    nvmlReturn_t result = put(device, CAPABILITY, &found); /* 86 for 8.6 */
    *major = (int)found / 10, *minor = (int)found % 10;
    return result;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    BEGIN(device);
    nvmlReturn_t result = put(device, MIG, current);
    *pending = *current;
    return result;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    BEGIN(device);
    *count = facts_of(device)->known[MIG] ? MAX_INSTANCES - 1 : 0;
    return end(OK);
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *found) {
    BEGIN(device);
    if (index >= MAX_INSTANCES) return end(INVALID_ARGUMENT);
    if (!facts_of(device)->number[MIG]) return end(NOT_SUPPORTED);
    return end(handle((unsigned int)device->card, (int)index, found));
}

/* Numbers */

#define NUMBER(call, key) nvmlReturn_t call(nvmlDevice_t device, unsigned int *value) { BEGIN(device); return put(device, key, value); }
NUMBER(nvmlDeviceGetPowerUsage, POWER)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, POWER_LIMIT)
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    BEGIN(device);
    if (memory->version != VERSION(nvmlMemory_v2_t, 2)) return end(ARGUMENT_VERSION_MISMATCH);
    nvmlReturn_t result = get(device, MEMORY_TOTAL, &memory->total);
    get(device, MEMORY_RESERVED, &memory->reserved), get(device, MEMORY_USED, &memory->used);
    memory->free = memory->total - memory->used - memory->reserved;
    if (facts_of(device)->number[COUNTS_RESERVED]) memory->used += memory->reserved;
    return end(result);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    BEGIN(device);
    rates->memory = 0;
    return put(device, UTILIZATION, &rates->gpu);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *celsius) {
    BEGIN(device);
    return sensor == 0 ? put(device, TEMPERATURE, celsius) : end(INVALID_ARGUMENT);
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int which, unsigned int *celsius) {
    BEGIN(device);
    return which > 1 ? end(INVALID_ARGUMENT) : put(device, which ? SLOWDOWN : SHUTDOWN, celsius);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *mask) { BEGIN(device); return end(get(device, THROTTLE, mask)); }

/* Each field answers for itself, in a type of its own. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    static const struct { uint32_t field; enum key key; int type; } KNOWN[] = {
        {4, ECC_UNCORRECTED, 3}, {31, RETIRED_PENDING, 1}, {143, REMAPPED_UNCORRECTED, 1}, {144, REMAPPED_PENDING, 1},
        {145, REMAPPED_FAILED, 1},
    };
    BEGIN(device);
    for (int i = 0; i < count; i++) {
        values[i].result = NOT_SUPPORTED;
        for (size_t k = 0; k < sizeof KNOWN / sizeof *KNOWN; k++) if (KNOWN[k].field == values[i].field) {
            unsigned long long found;
            values[i].result = get(device, KNOWN[k].key, &found);
            values[i].type = KNOWN[k].type;
            if (KNOWN[k].type == 3) values[i].value.ull = found;
            else values[i].value.ui = (unsigned int)found;
        }
    }
    return end(OK);
}

/* Processes. A card in MIG mode does not tell an ordinary user those of its instances. */

static nvmlReturn_t list(nvmlDevice_t device, unsigned int *room, char *to, size_t size) {
    unsigned int found = 0, fits = to ? *room : 0;
    if (device->instance == WHOLE && facts_of(device)->number[MIG]) return end(NO_PERMISSION);
    for (int i = 0; i < now.processes; i++) {
        struct process *p = &now.process[i];
        if (p->card != device->card || p->instance != device->instance) continue;
        if (found++ >= fits) continue;
        unsigned int instance = p->instance == WHOLE ? ~0u : (unsigned int)p->instance;
        nvmlProcessInfo_t info = {p->pid, p->bytes, instance, instance};
        memcpy(to + (found - 1) * size, &info, size);
    }
    *room = found;
    return end(found > fits ? INSUFFICIENT_SIZE : OK);
}

#define LIST(call, type) nvmlReturn_t call(nvmlDevice_t device, unsigned int *room, type *to) { \
    BEGIN(device); return list(device, room, (char *)to, sizeof(type)); }
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)

/* Events */

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    BEGIN(NULL);
    for (int i = 0; i < 8; i++) if (!sets[i].used) {
        sets[i] = (struct events){now.events, 1, 0}; /* what has happened before is not told */
        *set = &sets[i];
        return end(OK);
    }
    return end(23);
}
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *mask) { BEGIN(device); *mask = XID_EVENT | 1 | 2; return end(OK); }

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long mask, nvmlEventSet_t set) {
    BEGIN(device);
    if (mask & XID_EVENT) set->cards |= 1u << device->card;
    return end(OK);
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds) {
    BEGIN(NULL);
    for (unsigned int waited = 0;; waited += 10) {
        refresh();
        if (set->told > now.events) set->told = now.events; /* another scenario */
        while (set->told < now.events) {
            struct event *e = &now.event[set->told++];
            if (e->card < 0 || e->card >= MAX_CARDS || !(set->cards >> e->card & 1)) continue;
            *data = (nvmlEventData_t){&units[e->card][0], XID_EVENT, e->xid, ~0u, ~0u};
            return end(OK);
        }
        if (waited >= milliseconds) return end(TIMEOUT);
        pthread_mutex_unlock(&lock);
        usleep(10000);
        pthread_mutex_lock(&lock);
    }
}
