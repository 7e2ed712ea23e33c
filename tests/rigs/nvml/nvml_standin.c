/* A stand-in for NVIDIA's management library, for machines without a GPU.
 *
 * Only the calls that tfguard makes, after NVML's public C interface. What it does is chosen by TFGUARD_STANDIN:
 *   fine     two cards; the second one knows neither its power nor its load
 *   none     no cards
 *   hang     the call for memory never returns, after the first tick
 *   crash    the call for memory ends in an abort, after the first tick
 *   dead     the library loads, the driver does not
 *   mismatch the library is of another version than the driver
 *   stuck    the first call never returns
 *   broken   the first call ends in an abort
 *
 * The driver's version is TFGUARD_STANDIN_DRIVER, the CUDA it brings TFGUARD_STANDIN_CUDA (12040 for 12.4), the cards and
 * their compute capabilities TFGUARD_STANDIN_CARDS ("9.0,7.5", at most eight): what is not given is not supported, and
 * the cards are two.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int nvmlReturn_t;
enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, VERSION_MISMATCH = 18 };

typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;
typedef struct card { unsigned int index; } *nvmlDevice_t;

static struct card cards[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};

static int does(const char *what) {
    const char *chosen = getenv("TFGUARD_STANDIN");
    return strcmp(chosen ? chosen : "fine", what) == 0;
}

/* The text of card number `wanted` in the list of cards; NULL when the list ends before it. */
static const char *listed(unsigned int wanted) {
    const char *text = getenv("TFGUARD_STANDIN_CARDS");
    while (text && wanted--) {
        text = strchr(text, ',');
        if (text) text++;
    }
    return text;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    if (does("stuck")) for (;;) pause();
    if (does("broken")) abort();
    if (does("mismatch")) return VERSION_MISMATCH;
    return does("dead") ? DRIVER_NOT_LOADED : OK;
}
nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(nvmlReturn_t result) {
    if (result == VERSION_MISMATCH) return "Driver/library version mismatch";
    return result == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Not Supported";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    const char *chosen = getenv("TFGUARD_STANDIN_DRIVER");
    if (!chosen) return NOT_SUPPORTED;
    snprintf(version, length, "%s", chosen);
    return OK;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    const char *chosen = getenv("TFGUARD_STANDIN_CUDA");
    if (!chosen) return NOT_SUPPORTED;
    *version = atoi(chosen);
    return OK;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    *count = 0;
    if (does("none")) return OK;
    if (!listed(0)) *count = 2;
    else while (*count < 8 && listed(*count)) ++*count;
    return OK;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    const char *text = listed(device->index);
    return text && sscanf(text, "%d.%d", major, minor) == 2 ? OK : NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    if (index > 7) return NOT_FOUND;
    *device = &cards[index];
    return OK;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    static int calls = 0;
    if (++calls > 2 && does("hang")) for (;;) pause();
    if (calls > 2 && does("crash")) abort();
    memory->total = 42949672960ULL;
    memory->used = device->index ? 0 : 21474836480ULL;
    memory->free = memory->total - memory->used;
    return OK;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    if (device->index) return NOT_SUPPORTED;
    rates->gpu = 83;
    rates->memory = 40;
    return OK;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *celsius) {
    (void)sensor;
    *celsius = 71 - 30 * device->index;
    return OK;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts) {
    if (device->index) return NOT_SUPPORTED;
    *milliwatts = 288400;
    return OK;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned int length) {
    strncpy(text, device->index ? "GPU-00000000-0000-0000-0000-000000000001" : "GPU-00000000-0000-0000-0000-000000000000", length);
    return OK;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *text, unsigned int length) {
    strncpy(text, device->index ? "Stand-in B" : "Stand-in A", length);
    return OK;
}
