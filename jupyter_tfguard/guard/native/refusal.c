/*
 * Does the caller handle a refusal? A stack walk.
 *
 * The entry point does not identify the caller: the outputs of an op and tf.constant() use the same
 * ones. So, only on the slow path, the stack is compared with the address ranges of
 * OpKernelContext::allocate_*. Callers of these return the error to TensorFlow (OP_REQUIRES_OK),
 * with one exception: a helper of a oneDNN op only returns from itself, and Compute() continues
 * with a missing output. In that case the direct caller has "Mkl" in its name and is not Compute().
 *
 * XLA's allocator (TfAllocatorAdapter::Allocate) is left out. It reports the error too, but by then
 * a compiled training step has given away the memory of the variables that it updates. They remain
 * in use: seen with TensorFlow 2.21, weights of 1e39 after the error and then a segmentation fault.
 */
#include "process.h"
#include "refusal.h"

static const char *const ALLOCATE_NAMES[] = {
    "_ZN10tensorflow15OpKernelContext15allocate_outputEiRKNS_11TensorShapeEPPNS_6TensorE",
    "_ZN10tensorflow15OpKernelContext15allocate_outputEiRKNS_11TensorShapeEPPNS_"
    "6TensorEN3tsl19AllocatorAttributesE",
    "_ZN10tensorflow15OpKernelContext13allocate_tempENS_8DataTypeERKNS_11TensorShapeEPNS_6TensorE",
    "_ZN10tensorflow15OpKernelContext13allocate_tempENS_8DataTypeERKNS_11TensorShapeEPNS_"
    "6TensorEN3tsl19AllocatorAttributesE",
    "_ZN10tensorflow15OpKernelContext13allocate_tempENS_8DataTypeERKNS_11TensorShapeEPNS_"
    "6TensorEN3tsl19AllocatorAttributesE"
    "RKNS7_20AllocationAttributesE",
    "_ZN10tensorflow15OpKernelContext15allocate_tensorENS_8DataTypeERKNS_11TensorShapeEPNS_"
    "6TensorEN3tsl19AllocatorAttributesE"
    "RKNS7_20AllocationAttributesE",
};

static struct range allocate_ranges[LENGTH(ALLOCATE_NAMES)];

/* False if this TensorFlow lacks one of the functions. */
bool find_allocate_ranges(void *framework)
{
    for (size_t i = 0; i < LENGTH(ALLOCATE_NAMES); i++) {
        Dl_info about;
        ElfW(Sym) *symbol = NULL;
        const char *start = dlsym(framework, ALLOCATE_NAMES[i]);
        if (start == NULL || dladdr1(start, &about, (void **)&symbol, RTLD_DL_SYMENT) == 0 ||
            symbol == NULL || symbol->st_size == 0) {
            return false;
        }
        allocate_ranges[i] = (struct range){start, start + symbol->st_size};
    }
    return true;
}

static bool is_allocate(const char *address)
{
    for (size_t i = 0; i < LENGTH(allocate_ranges); i++) {
        /* A return address; it may equal `end`, because the call may be the last instruction. */
        if (address > allocate_ranges[i].start && address <= allocate_ranges[i].end) {
            return true;
        }
    }
    return false;
}

static bool is_onednn_helper(const void *address)
{
    Dl_info about;
    return dladdr(address, &about) != 0 && about.dli_sname != NULL &&
           strstr(about.dli_sname, "Mkl") != NULL && strstr(about.dli_sname, "7Compute") == NULL;
}

bool caller_handles_refusal(void)
{
    void *frames[40];
    int count = backtrace(frames, LENGTH(frames));
    bool in_allocate = false;
    for (int i = 0; i < count; i++) {
        if (is_allocate(frames[i])) {
            in_allocate = true;
        } else if (in_allocate) {
            return !is_onednn_helper(frames[i]);
        }
    }
    return in_allocate;
}
