#pragma once
#include "base.h"

int start_thread(pthread_t *thread, void *(*run)(void *), const char *name);
