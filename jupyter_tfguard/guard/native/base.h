/*
 * The native part of the guard: a thread that samples memory without the GIL, and a gate that checks
 * large allocations.
 *
 * Plain C11 for Linux with glibc, x86-64 and aarch64. Uses no headers of Python, NumPy or
 * TensorFlow: everything to patch is found and checked at run time. native.py loads the library
 * with ctypes; it is never unloaded. While disarmed (no cell runs, the guard is paused, an error is
 * being printed) each hook only calls the original function. A forked child has no thread that
 * samples, so its gate stays disarmed.
 *
 * This file: what all the others share.
 */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

/* Of a block that malloc has mapped. */
static const size_t HEADER_BYTES = 2 * sizeof(size_t);

extern size_t page_bytes;

/* State of one thread. Read only for large requests: access may call __tls_get_addr. */
extern __thread struct thread_state {
    bool inside;         /* in the gate itself, whose allocations are not checked */
    bool resizing;       /* a block that realloc() is about to resize: it cannot move to disk */
    bool releasing_pool; /* give_back.c: the pool must not grow */
    size_t pool_request; /* bytes requested from TensorFlow's pool while its code runs; 0: none */
    enum { NOT_REFUSED, TOO_LARGE, REFUSED, WANTED_ON_DISK } pool_answer;
} self;

static inline int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static inline size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) & ~(unit - 1);
}

static inline int64_t smaller(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

static inline int64_t larger(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static inline int64_t at_least_0(int64_t number)
{
    return larger(0, number);
}
