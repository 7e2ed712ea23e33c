/* Memory that was granted and that no counter includes yet. */
#pragma once
#include "base.h"

static const size_t NOTED_BYTES = 4 << 20; /* smaller blocks are filled before the next request */

enum which { ALL_GRANTS, ABOUT_TO_BE_FILLED };

int64_t untouched_bytes(const void *block, size_t size);
void note_grant(void *block, size_t size, bool may_wait);
void note_slow_grant(void *block, size_t size);
int64_t promised_bytes(int64_t room, enum which which);
void grants_in_child(void);
