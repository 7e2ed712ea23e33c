/* Blocks on disk instead of in memory. */
#pragma once
#include "base.h"

enum growth { NOT_ON_DISK, HAS_ROOM, NO_ROOM };

extern atomic_bool disk_armed;
extern pthread_mutex_t disk_lock;

void *disk_allocate(size_t size, size_t alignment);
int64_t disk_bytes_written(void);
enum growth grow_on_disk(const char *address, size_t size);
void disk_in_child(void);
