/* The decision about a large request. */
#pragma once
#include "watch.h"

/* The gate never checks smaller requests: the samples cover them. Of other threads than the main
 * one it checks those of MEDIUM_BYTES as well while a cell is being stopped. */
static const size_t LARGE_BYTES = 1 << 20, MEDIUM_BYTES = 64 << 10;
/* Larger requests fail anyway: they exceed the address space. */
static const size_t HUGE_BYTES = (size_t)1 << 47;

/* SPARSE_ON_DISK: the block is probably used only in part. */
enum answer { GRANT, REFUSE, ON_DISK, SPARSE_ON_DISK };

/* What the hooks in TensorFlow do. RELEASES: only let its pool be released (give_back.c). REFUSES:
 * also refuse and place on disk. */
extern atomic_int tensorflow_hooks;
enum { NO_HOOKS, RELEASES, REFUSES };

enum answer decide(size_t size, enum caller caller);
enum answer ask(size_t size, size_t alignment, enum caller caller, void **block);
bool may_resize(void *block, size_t size, enum caller caller);
void stop_if_beyond(size_t size);
