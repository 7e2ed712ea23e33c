/* The Python functions on the stack of this thread. */
#pragma once
#include "base.h"

extern int (*holds_interpreter_lock)(void); /* PyGILState_Check */

bool is_empty_of_user(void);
bool runs_notebook_code(void);
void know_empty(const void *empty, const void *empty_like, const char *folder);
