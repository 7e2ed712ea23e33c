/* Packages that check the result of malloc() or realloc(): Fourier transforms, pandas, scikit-learn. */
#include "decide.h"
#include "grants.h"
#include "patch.h"

/* --- Fourier transforms of NumPy and SciPy. They check the result of malloc(), so a refusal raises
 * MemoryError. */

static void *fourier_malloc(size_t size)
{
    void *block;
    if (ask(size, HEADER_BYTES, NUMPY, &block) == GRANT) {
        block = malloc(size);
        note_grant(block, size, false);
    }
    return block;
}

static const struct import FOURIER_IMPORTS[] = {{"malloc", (void *)fourier_malloc, NULL}};

static bool is_fourier(const char *path)
{
    return strstr(path, "/numpy/fft/_pocketfft_") != NULL ||
           strstr(path, "/scipy/fft/_pocketfft/pypocketfft.") != NULL;
}

/* Arms the gate in Fourier transforms. Returns NULL, or the reason for a failure. */
EXPORT const char *tfguard_arm_fourier(void)
{
    return arm_imports(PART_FOURIER, FOURIER_IMPORTS, LENGTH(FOURIER_IMPORTS), is_fourier,
                       "These Fourier transforms are built in an unknown way.");
}

/* --- pandas. Its parser checks the result of realloc(). Its hash tables do not, also those in
 * parsers.so, and are not patched: a refusal would be a crash, and on disk they are too slow,
 * because they are read in random order. Before pandas 2 the parser is in the same library as they,
 * and is not patched. */

static void *pandas_realloc(void *block, size_t size)
{
    return may_resize(block, size, PANDAS) ? realloc(block, size) : NULL;
}

static const struct import PANDAS_IMPORTS[] = {{"realloc", (void *)pandas_realloc, NULL}};

static bool is_pandas_parser(const char *path)
{
    return strstr(path, "/pandas/_libs/pandas_parser.") != NULL;
}

/* Arms the gate in pandas. Returns NULL, or the reason for a failure. */
EXPORT const char *tfguard_arm_pandas(void)
{
    return arm_imports(PART_PANDAS, PANDAS_IMPORTS, LENGTH(PANDAS_IMPORTS), is_pandas_parser,
                       "This version of pandas is built in an unknown way.");
}

/* --- scikit-learn. The builders of its trees double an array of nodes with realloc() and check the
 * result. They run in threads without the GIL, where no exception can stop them. What was granted is
 * filled within seconds or minutes, so that each request counts what all have still to fill. */

static void *sklearn_realloc(void *block, size_t size)
{
    if (!may_resize(block, size, SKLEARN)) {
        return NULL;
    }
    bool grows = block == NULL || size > malloc_usable_size(block);
    void *moved = realloc(block, size);
    if (grows) {
        note_slow_grant(moved, size);
    }
    return moved;
}

static const struct import SKLEARN_IMPORTS[] = {{"realloc", (void *)sklearn_realloc, NULL}};

static bool is_sklearn_trees(const char *path)
{
    return strstr(path, "/sklearn/tree/_utils.") != NULL;
}

/* Arms the gate in scikit-learn. Returns NULL, or the reason for a failure. */
EXPORT const char *tfguard_arm_sklearn(void)
{
    return arm_imports(PART_SKLEARN, SKLEARN_IMPORTS, LENGTH(SKLEARN_IMPORTS), is_sklearn_trees,
                       "This version of scikit-learn is built in an unknown way.");
}
