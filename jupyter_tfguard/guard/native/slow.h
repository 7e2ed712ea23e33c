/* Native threads that a stopped cell has started. */
#pragma once
#include "base.h"

extern _Atomic int64_t slow_until_us; /* 0: not now */
extern _Atomic int64_t held_until_us; /* the end of this turn; the handler waits for it */

void find_python_locks(void);
void note_start_of_cell(void);
int64_t slow_threads(int64_t now);
void start_slowing(int64_t now);
