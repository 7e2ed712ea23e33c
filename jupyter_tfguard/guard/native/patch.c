/* Patching: replace pointers, record them and restore them. */
#include "patch.h"
#include "process.h"

struct patch {
    enum part part;
    void **slot;
    void *original, *replacement;
} patches[256];
static size_t patch_count;

/* Writes a pointer into a page that the loader may have made read-only (RELRO), and restores the
 * protection of the page. */
static bool write_pointer(void **slot, void *value)
{
    struct address_query query = {.address = (uintptr_t)slot};
    if (!find_mapping(holds_address, &query)) {
        return false;
    }
    void *page = (void *)((uintptr_t)slot & ~(page_bytes - 1));
    int protection = query.found.protection;
    bool is_writable = (protection & PROT_WRITE) != 0;
    if (!is_writable && mprotect(page, page_bytes, protection | PROT_WRITE) != 0) {
        return false;
    }
    __atomic_store_n(slot, value, __ATOMIC_RELEASE); /* other threads may be calling through it */
    if (!is_writable) {
        mprotect(page, page_bytes, protection);
    }
    return true;
}

bool patch(enum part part, void **slot, void *replacement)
{
    void *original = *slot;
    if (original == replacement) {
        return true;
    }
    if (patch_count == LENGTH(patches) || !write_pointer(slot, replacement)) {
        return false;
    }
    patches[patch_count++] = (struct patch){part, slot, original, replacement};
    return true;
}

/* Restores pointers that still have our value. `keeps` (may be NULL): replacements that stay. */
void restore(enum part part, bool (*keeps)(const void *replacement))
{
    size_t kept = 0;
    for (size_t i = 0; i < patch_count; i++) {
        struct patch *one = &patches[i];
        bool stays = one->part != part || (keeps != NULL && keeps(one->replacement));
        if (!stays && *one->slot == one->replacement) {
            write_pointer(one->slot, one->original);
        }
        if (stays) {
            patches[kept++] = *one;
        }
    }
    patch_count = kept;
}

#if defined(__x86_64__)
enum { SLOT_OF_CALL = R_X86_64_JUMP_SLOT, SLOT_OF_POINTER = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { SLOT_OF_CALL = R_AARCH64_JUMP_SLOT, SLOT_OF_POINTER = R_AARCH64_GLOB_DAT };
#else
#error "The relocation numbers of this processor are not known: see elf.h"
#endif

static bool is_in_file(const void *address, const char *start_of_name)
{
    Dl_info about;
    if (dladdr(address, &about) == 0 || about.dli_fname == NULL) {
        return false;
    }
    const char *name = strrchr(about.dli_fname, '/');
    return strncmp(name == NULL ? about.dli_fname : name + 1, start_of_name,
                   strlen(start_of_name)) == 0;
}

/* Replaces the function in one slot, if it is the expected one. */
static void patch_import(struct import_job *job, const struct import *import, void **slot,
                         const void *library)
{
    void *current = *slot;
    if (current == import->replacement) {
        job->patched++;
        return;
    }
    void *function = current;
    /* Not called yet, the slot points to the loader's stub. */
    if (object_of(current) == library || is_stub(current)) {
        function = function_named(import->name);
        if (function == NULL) {
            void *standard = dlopen("libstdc++.so.6", RTLD_NOLOAD | RTLD_LAZY);
            function = standard == NULL ? NULL : dlsym(standard, import->name);
            if (standard != NULL) {
                dlclose(standard);
            }
        }
    }
    /* Some releases define operator new themselves; it calls malloc through a slot that is patched
     * as well. */
    if (function != NULL && is_in_file(function, "libtensorflow_")) {
        return;
    }
    if (function == NULL || (!is_in_file(function, "libc.so") && !is_in_file(function, "libc-") &&
                             !is_in_file(function, "libstdc++.so"))) {
        job->problem = "Its memory does not come from the usual libraries.";
        return;
    }
    if (import->original != NULL) {
        *import->original = function;
    }
    if (patch(job->part, slot, import->replacement)) {
        job->patched++;
    } else {
        job->problem = "The system does not let its calls be changed.";
    }
}

struct library {
    ElfW(Addr) base;
    const ElfW(Dyn) * dynamic;
};

struct library_search {
    bool (*wants)(const char *path);
    struct library found[64];
    size_t count;
};

/* Only collects: the loader holds a lock during the callback, and neither dladdr() nor dlsym() may
 * be called under it. */
static int collect_library(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct library_search *search = argument;
    (void)size;
    if (info->dlpi_name == NULL || !search->wants(info->dlpi_name) ||
        search->count == LENGTH(search->found)) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            search->found[search->count++] = (struct library){
                info->dlpi_addr, (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr)};
        }
    }
    return 0;
}

/* Patches the matching relocations of one library. */
static void patch_library(struct import_job *job, const struct library *library)
{
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    const ElfW(Rela) * tables[2] = {NULL, NULL};
    size_t lengths[2] = {0, 0};
    for (const ElfW(Dyn) *entry = library->dynamic; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) { /* glibc has converted file offsets to addresses */
        case DT_SYMTAB: symbols = (const ElfW(Sym) *)entry->d_un.d_ptr; break;
        case DT_STRTAB: names = (const char *)entry->d_un.d_ptr; break;
        case DT_JMPREL: tables[0] = (const ElfW(Rela) *)entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: lengths[0] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_RELA: tables[1] = (const ElfW(Rela) *)entry->d_un.d_ptr; break;
        case DT_RELASZ: lengths[1] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        }
    }
    if (symbols == NULL || names == NULL) {
        return;
    }
    const void *object = object_of(names);
    for (int table = 0; table < 2; table++) {
        for (size_t i = 0; tables[table] != NULL && i < lengths[table]; i++) {
            const ElfW(Rela) *relocation = &tables[table][i];
            unsigned type = ELF64_R_TYPE(relocation->r_info);
            if (type != SLOT_OF_CALL && type != SLOT_OF_POINTER) {
                continue;
            }
            const char *name = names + symbols[ELF64_R_SYM(relocation->r_info)].st_name;
            for (size_t k = 0; k < job->import_count; k++) {
                if (strcmp(name, job->imports[k].name) == 0) {
                    patch_import(job, &job->imports[k],
                                 (void **)(library->base + relocation->r_offset), object);
                }
            }
        }
    }
}

void patch_libraries(struct import_job *job, bool (*wants)(const char *path))
{
    struct library_search search = {.wants = wants};
    dl_iterate_phdr(collect_library, &search);
    for (size_t i = 0; i < search.count; i++) {
        patch_library(job, &search.found[i]);
    }
}

/* Arms the gate in the imports of some libraries. Returns NULL, or the reason for a failure. */
const char *arm_imports(enum part part, const struct import *imports, size_t count,
                               bool (*wants)(const char *path), const char *unknown)
{
    struct import_job job = {part, imports, count, 0, NULL};
    if (!is_glibc_malloc()) {
        return "Another memory allocator than glibc's is loaded.";
    }
    patch_libraries(&job, wants);
    if (job.problem == NULL && job.patched == 0) {
        job.problem = unknown;
    }
    if (job.problem != NULL) {
        restore(part, NULL);
    }
    return job.problem;
}
