/* CPython's allocators. */
#pragma once

void restore_python(void);
