/* Available memory, and what this process uses. */
#pragma once
#include "base.h"

extern pthread_rwlock_t groups_lock;

int64_t tfguard_available(void);
int64_t used_by(const char *folder, int *most, int generations);
void tfguard_use_groups(int count, const int *versions, const char *const *folders);
