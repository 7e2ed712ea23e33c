/* The Python functions on the stack: is this the user's code, and may it get a MemoryError? */
#include "frames.h"

int (*holds_interpreter_lock)(void);
/* numpy.empty() in the user's own code is like numpy.zeros(): it may be used only in part. NumPy's
 * functions and other packages fill what they get from it. */
static const void *empty_functions[2];
static void *(*get_frame)(void), *(*get_code)(void *), *(*get_attribute)(void *, const char *);
static void *(*get_caller)(void *);
static const char *(*get_text)(void *);
static void (*keep_object)(void *), (*release_object)(void *);
static int (*pause_collection)(void), (*resume_collection)(void);
/* Folders of code that is not the user's: that of NumPy, next to which other packages are, of the
 * standard library, and of this package. */
static char packages[PATH_MAX], standard_library[PATH_MAX], own_package[PATH_MAX];
static const void *(*function_of)(const void *); /* _Unwind_FindEnclosingFunction */

static bool is_in_empty(void)
{
    void *frames[16];
    int count = backtrace(frames, LENGTH(frames));
    for (int i = 0; i < count; i++) {
        const void *it = function_of((char *)frames[i] - 1);
        if (it != NULL && (it == empty_functions[0] || it == empty_functions[1])) {
            return true;
        }
    }
    return false;
}

static bool is_in(const char *path, const char *folder)
{
    return folder[0] != 0 && strncmp(path, folder, strlen(folder)) == 0;
}

static bool is_users_file(const char *path)
{
    return !is_in(path, packages) && strstr(path, "/site-packages/") == NULL &&
           strstr(path, "/dist-packages/") == NULL;
}

/* True if the innermost Python function belongs to no installed package. */
static bool is_user_code(void)
{
    void *frame = get_frame();
    if (frame == NULL) {
        return false;
    }
    void *code = get_code(frame), *file = get_attribute(code, "co_filename");
    const char *path = file == NULL ? NULL : get_text(file);
    bool is_users = path != NULL && is_users_file(path);
    release_object(file);
    release_object(code);
    return is_users;
}

/* A refusal becomes a MemoryError where the request was made. Code of the notebook may get one, and
 * so may what a pool or TensorFlow runs for it: they hand it on. Elsewhere it ends what others
 * wait for: the thread of a pool that receives the results, or the kernel's own event loop while a
 * cell awaits. */
static const struct python_function {
    const char *end_of_path, *name; /* NULL: any */
    bool hands_on;
} KNOWN_FUNCTIONS[] = {
    {"/concurrent/futures/thread.py", "run", true},
    {"/multiprocessing/pool.py", "worker", true},
    {"/tensorflow/python/ops/script_ops.py", NULL, true},
    {"/asyncio/base_events.py", "_run_once", false},
};

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Functions of this package that only call others, and how far from the request others count. */
static const char *const CALLS_OTHERS[] = {"run_and_record", "checked"};
enum { NEAR = 8 };

static enum { HANDS_ON, BREAKS, ASK_CALLER } kind_of(const char *path, const char *name, int depth)
{
    for (size_t i = 0; i < LENGTH(KNOWN_FUNCTIONS); i++) {
        const struct python_function *one = &KNOWN_FUNCTIONS[i];
        if (ends_with(path, one->end_of_path) &&
            (one->name == NULL || strcmp(name, one->name) == 0)) {
            return one->hands_on ? HANDS_ON : BREAKS;
        }
    }
    if (is_in(path, own_package)) {
        bool is_our_work = depth < NEAR;
        for (size_t i = 0; i < LENGTH(CALLS_OTHERS); i++) {
            is_our_work &= strcmp(name, CALLS_OTHERS[i]) != 0;
        }
        return is_our_work ? BREAKS : ASK_CALLER;
    }
    bool is_users =
        is_users_file(path) && !is_in(path, standard_library) && !is_in(path, "<frozen ");
    return is_users ? HANDS_ON : ASK_CALLER;
}

/* Walks the Python frames of this thread, the innermost first. Without the GIL, in native code that
 * Python has called: true. */
bool runs_notebook_code(void)
{
    if (pause_collection == NULL || !holds_interpreter_lock()) {
        return true;
    }
    /* Looking at a frame may allocate an object: no collection here, inside an allocation. */
    int was_on = pause_collection(), found = ASK_CALLER;
    void *frame = get_frame();
    if (frame != NULL) {
        keep_object(frame);
    }
    for (int depth = 0; frame != NULL && found == ASK_CALLER; depth++) {
        void *code = get_code(frame);
        void *file = get_attribute(code, "co_filename"), *name = get_attribute(code, "co_name");
        const char *path = file == NULL ? NULL : get_text(file);
        const char *text = name == NULL ? NULL : get_text(name);
        if (path != NULL && text != NULL) {
            found = kind_of(path, text, depth);
        }
        release_object(file);
        release_object(name);
        release_object(code);
        void *caller = get_caller(frame);
        release_object(frame);
        frame = caller;
    }
    release_object(frame);
    if (was_on) {
        resume_collection();
    }
    return found == HANDS_ON;
}

bool is_empty_of_user(void)
{
    return empty_functions[0] != NULL && holds_interpreter_lock() && is_in_empty() &&
           is_user_code();
}

/* Call before the gate is armed. Both folders end with a slash. */
EXPORT void tfguard_use_folders(const char *standard, const char *own)
{
    snprintf(standard_library, sizeof standard_library, "%s", standard);
    snprintf(own_package, sizeof own_package, "%s", own);
    *(void **)&holds_interpreter_lock = dlsym(RTLD_DEFAULT, "PyGILState_Check");
    *(void **)&get_frame = dlsym(RTLD_DEFAULT, "PyEval_GetFrame");
    *(void **)&get_caller = dlsym(RTLD_DEFAULT, "PyFrame_GetBack");
    *(void **)&get_code = dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
    *(void **)&get_attribute = dlsym(RTLD_DEFAULT, "PyObject_GetAttrString");
    *(void **)&get_text = dlsym(RTLD_DEFAULT, "PyUnicode_AsUTF8");
    *(void **)&keep_object = dlsym(RTLD_DEFAULT, "Py_IncRef");
    *(void **)&release_object = dlsym(RTLD_DEFAULT, "Py_DecRef");
    *(void **)&resume_collection = dlsym(RTLD_DEFAULT, "PyGC_Enable");
    if (holds_interpreter_lock && get_frame && get_caller && get_code && get_attribute &&
        get_text && keep_object && release_object && resume_collection) {
        *(void **)&pause_collection = dlsym(RTLD_DEFAULT, "PyGC_Disable");
    }
}

void know_empty(const void *empty, const void *empty_like, const char *folder)
{
    snprintf(packages, sizeof packages, "%s", folder);
    void *unwinder = dlopen("libgcc_s.so.1", RTLD_LAZY);
    if (unwinder != NULL) {
        *(void **)&function_of = dlsym(unwinder, "_Unwind_FindEnclosingFunction");
    }
    if (function_of && pause_collection) {
        empty_functions[0] = empty;
        empty_functions[1] = empty_like;
    }
}
