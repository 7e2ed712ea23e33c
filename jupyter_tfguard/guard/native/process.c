/* This process: its mappings, its libraries, and which malloc they use. */
#include "process.h"

size_t page_bytes = 4096; /* set at start: 64 KiB on some aarch64 systems */
__thread struct thread_state self;

/* 7f5c4a000000-7f5c4a021000 rw-p 00000000 00:00 0       /tmp/name (deleted) */
static bool parse_mapping(const char *line, struct mapping *found)
{
    char flags[5];
    int name_at = 0;
    if (sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu %n", &found->start, &found->end, flags,
               &found->inode, &name_at) < 4) {
        return false;
    }
    found->protection = (flags[0] == 'r' ? PROT_READ : 0) | (flags[1] == 'w' ? PROT_WRITE : 0) |
                        (flags[2] == 'x' ? PROT_EXEC : 0);
    found->is_private = flags[3] == 'p';
    found->name = line + name_at;
    return true;
}

/* Calls visit for each mapping of this process until it returns true. Allocates nothing: it also
 * runs inside malloc. */
bool find_mapping(bool (*visit)(const struct mapping *, void *), void *argument)
{
    char buffer[PATH_MAX + 512];
    size_t held = 0;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    for (;;) {
        ssize_t got = read(fd, buffer + held, sizeof buffer - 1 - held);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        held += (size_t)got;
        buffer[held] = 0;
        char *line = buffer, *end;
        while (!found && (end = strchr(line, '\n')) != NULL) {
            struct mapping mapping;
            *end = 0;
            found = parse_mapping(line, &mapping) && visit(&mapping, argument);
            line = end + 1;
        }
        held -= (size_t)(line - buffer);
        memmove(buffer, line, held);
        if (found || held == sizeof buffer - 1) {
            break;
        }
    }
    close(fd);
    return found;
}

bool holds_address(const struct mapping *mapping, void *argument)
{
    struct address_query *query = argument;
    if (query->address < mapping->start || query->address >= mapping->end) {
        return false;
    }
    query->found = *mapping;
    query->found.name =
        mapping->name[0] ? "named" : ""; /* the text is invalid after the visit */
    return true;
}

const void *object_of(const void *address)
{
    Dl_info about;
    return address != NULL && dladdr(address, &about) ? about.dli_fbase : NULL;
}

/* A program that is not position-independent and takes the address of a library's function, such as
 * Debian's Python, has a stub that is this address for all libraries. */
bool is_stub(const void *function)
{
    Dl_info about;
    ElfW(Sym) *symbol = NULL;
    return dladdr1(function, &about, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL &&
           symbol->st_shndx == SHN_UNDEF;
}

/* The function of this name that calls reach; NULL if there is none. dlsym() may return a stub. */
void *function_named(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL || !is_stub(found)) {
        return found;
    }
    void *program = dlopen(NULL, RTLD_NOLOAD | RTLD_LAZY);
    struct link_map *object = NULL;
    if (program == NULL || dlinfo(program, RTLD_DI_LINKMAP, &object) != 0) {
        return found;
    }
    while ((object = object->l_next) != NULL) { /* in the order in which the loader searches */
        void *library = dlopen(object->l_name, RTLD_NOLOAD | RTLD_LAZY);
        void *function = library == NULL ? NULL : dlsym(library, name);
        if (library != NULL) {
            dlclose(library);
        }
        if (function != NULL && object_of(function) == object_of(object->l_ld)) {
            found = function;
            break;
        }
    }
    dlclose(program);
    return found;
}

/* True if malloc_usable_size() may be called on blocks of malloc(). */
bool is_whole_malloc(void)
{
    const void *library = object_of(function_named("malloc"));
    return library != NULL && library == object_of(function_named("realloc")) &&
           library == object_of(function_named("malloc_usable_size"));
}

/* True if malloc's functions are glibc's: the free() of another allocator would abort on our
 * header. */
bool is_glibc_malloc(void)
{
    static const char *const names[] = {"malloc", "free",           "realloc",
                                        "calloc", "posix_memalign", "malloc_usable_size"};
    const void *glibc = object_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    for (size_t i = 0; i < LENGTH(names); i++) {
        if (glibc == NULL || object_of(function_named(names[i])) != glibc) {
            return false;
        }
    }
    return true;
}
