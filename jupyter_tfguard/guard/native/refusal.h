/* Does the code of TensorFlow that requests memory handle a refusal? */
#pragma once
#include "base.h"

bool find_allocate_ranges(void *framework);
bool caller_handles_refusal(void);
