/* Replaced pointers, and functions that libraries import. */
#pragma once
#include "base.h"

enum part { PART_NUMPY, PART_FOURIER, PART_TENSORFLOW, PART_PANDAS, PART_SKLEARN };

struct import {
    const char *name;
    void *replacement;
    void **original; /* NULL: the replacement calls the function by name */
};

struct import_job {
    enum part part;
    const struct import *imports;
    size_t import_count;
    size_t patched; /* slots */
    const char *problem;
};

bool patch(enum part part, void **slot, void *replacement);
void restore(enum part part, bool (*keeps)(const void *replacement));
void patch_libraries(struct import_job *job, bool (*wants)(const char *path));
const char *arm_imports(enum part part, const struct import *imports, size_t count,
                        bool (*wants)(const char *path), const char *unknown);
