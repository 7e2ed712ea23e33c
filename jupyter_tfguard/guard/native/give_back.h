/* Free memory of allocators, back to the system. */
#pragma once
#include "base.h"

extern _Atomic int64_t giving_back_us; /* when it began that is under way; 0 without one */

void find_allocators(void);
bool start_giving_back(int64_t available, double level, int64_t now);
bool is_giving_back(int64_t now);
void note_available(int64_t available);
