/* This process: its mappings, its libraries, and which malloc they use. */
#pragma once
#include "base.h"

struct mapping {
    uintptr_t start, end;
    int protection;
    bool is_private;
    unsigned long inode;
    const char *name; /* "" for anonymous memory */
};

struct range {
    const char *start, *end;
};

struct address_query {
    uintptr_t address;
    struct mapping found;
};

bool find_mapping(bool (*visit)(const struct mapping *, void *), void *argument);
bool holds_address(const struct mapping *mapping, void *query);
const void *object_of(const void *address);
bool is_stub(const void *function);
void *function_named(const char *name);
bool is_whole_malloc(void);
bool is_glibc_malloc(void);
