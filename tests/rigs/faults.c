/* Fails system calls on request: loaded before the C library (LD_PRELOAD), it wraps the functions that Python and ctypes
   call, and fails one of them, or all from one on, when its path or descriptor lies in a given folder.

   faults_arm(call, nth, code, mode), or TFG_FAULT="call:nth:errno:mode" at the start of a process; TFG_FAULT_DIR is the
   folder. `call` may be "*". Modes: 'o' once; 'f' that call from the nth on; 'a' every call from the nth on; 's' once, and
   half of the bytes are written instead of failing. Writes to descriptor 2 are the user's own and never fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char folder[PATH_MAX];
static size_t folder_length;
static char armed_call[32];
static long armed_nth; /* 0: disarmed, but counting */
static int armed_code;
static char armed_mode;
static long seen;     /* calls of the armed kind */
static long failed;   /* faults that were injected */
static char counted_name[32][32];
static long counted[32];
static __thread int after_copy;

void faults_folder(const char *path) {
  folder_length = strlen(path);
  strncpy(folder, path, sizeof folder - 1);
}

void faults_arm(const char *call, long nth, int code, char mode) {
  armed_nth = 0;
  strncpy(armed_call, call, sizeof armed_call - 1);
  armed_code = code;
  armed_mode = mode;
  seen = failed = 0;
  armed_nth = nth;
}

long faults_failed(void) { return failed; }

void faults_forget(void) { memset(counted, 0, sizeof counted); }

long faults_count(const char *call) {
  for (int i = 0; i < 32 && counted_name[i][0]; i++)
    if (!strcmp(counted_name[i], call)) return counted[i];
  return 0;
}

__attribute__((constructor)) static void begin(void) {
  const char *where = getenv("TFG_FAULT_DIR"), *what = getenv("TFG_FAULT");
  char call[32], mode;
  long nth;
  int code;
  if (where) faults_folder(where);
  if (what && sscanf(what, "%31[^:]:%ld:%d:%c", call, &nth, &code, &mode) == 4)
    faults_arm(call, nth, code, mode);
}

static int in_folder(const char *path) {
  return folder_length && !strncmp(path, folder, folder_length) &&
         (path[folder_length] == '/' || !path[folder_length] || path[folder_length] == ' ');
}

static int ours_fd(int fd) {
  char link[64], path[PATH_MAX];
  if (!folder_length || fd < 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return in_folder(path);
}

static int ours_path(int at, const char *path) {
  if (!path) return 0;
  return path[0] == '/' || at == AT_FDCWD ? in_folder(path) : ours_fd(at);
}

static void count(const char *call) {
  for (int i = 0; i < 32; i++) {
    if (!counted_name[i][0]) strncpy(counted_name[i], call, 31);
    if (!strcmp(counted_name[i], call)) {
      __atomic_fetch_add(&counted[i], 1, __ATOMIC_RELAXED);
      return;
    }
  }
}

static void tell(const char *call) {
  const char *log = getenv("TFG_FAULT_LOG");
  if (!log) return;
  int fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  char line[80];
  int length = snprintf(line, sizeof line, "%s\n", call);
  syscall(SYS_write, fd, line, length);
  syscall(SYS_close, fd);
}

/* Whether this call is to fail; errno is then set. 2: it is to be short. */
static int fails(const char *call, int ours) {
  if (!ours) return 0;
  int saved = errno;
  count(call);
  int hit = 0;
  if (armed_nth) {
    int same = !strcmp(armed_call, call) || !strcmp(armed_call, "*");
    long number = same ? __atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED) : 0;
    hit = same && (number == armed_nth || (number > armed_nth && strchr("fa", armed_mode)));
    if (!hit && armed_mode == 'a' && failed) hit = 1;
  }
  if (!hit) {
    errno = saved;
    return 0;
  }
  __atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
  tell(call);
  errno = armed_code;
  return armed_mode == 's' ? 2 : 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MODE(flags)                                  \
  mode_t mode = 0;                                   \
  if ((flags) & (O_CREAT | O_TMPFILE)) {             \
    va_list list;                                    \
    va_start(list, flags);                           \
    mode = va_arg(list, int);                        \
    va_end(list);                                    \
  }

int open64(const char *path, int flags, ...) {
  MODE(flags)
  return fails("open", ours_path(AT_FDCWD, path)) ? -1 : REAL(open64)(path, flags, mode);
}
int open(const char *path, int flags, ...) {
  MODE(flags)
  return fails("open", ours_path(AT_FDCWD, path)) ? -1 : REAL(open)(path, flags, mode);
}
int openat64(int at, const char *path, int flags, ...) {
  MODE(flags)
  return fails("openat", ours_path(at, path)) ? -1 : REAL(openat64)(at, path, flags, mode);
}
ssize_t write(int fd, const void *bytes, size_t length) {
  int how = fd == 2 ? 0 : fails("write", ours_fd(fd));
  return how == 1 ? -1 : REAL(write)(fd, bytes, how == 2 ? length / 2 : length);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
  int how = fd == 2 ? 0 : fails("pwrite", ours_fd(fd));
  return how == 1 ? -1 : REAL(pwrite64)(fd, bytes, how == 2 ? length / 2 : length, at);
}
int ftruncate64(int fd, off64_t length) {
  return fails("ftruncate", ours_fd(fd)) ? -1 : REAL(ftruncate64)(fd, length);
}
int fallocate64(int fd, int mode, off64_t at, off64_t length) {
  return fails("fallocate", ours_fd(fd)) ? -1 : REAL(fallocate64)(fd, mode, at, length);
}
int fallocate(int fd, int mode, off_t at, off_t length) {
  return fails("fallocate", ours_fd(fd)) ? -1 : REAL(fallocate)(fd, mode, at, length);
}
int posix_fallocate64(int fd, off64_t at, off64_t length) {
  int saved = errno;
  if (fails("posix_fallocate", ours_fd(fd))) {
    int code = errno;
    errno = saved;
    return code; /* this one returns its error */
  }
  return REAL(posix_fallocate64)(fd, at, length);
}
int mkdir(const char *path, mode_t mode) {
  return fails("mkdir", ours_path(AT_FDCWD, path)) ? -1 : REAL(mkdir)(path, mode);
}
int mkdirat(int at, const char *path, mode_t mode) {
  return fails("mkdir", ours_path(at, path)) ? -1 : REAL(mkdirat)(at, path, mode);
}
int rename(const char *from, const char *to) {
  return fails("rename", ours_path(AT_FDCWD, from)) ? -1 : REAL(rename)(from, to);
}
int renameat(int at, const char *from, int to_at, const char *to) {
  return fails("rename", ours_path(at, from)) ? -1 : REAL(renameat)(at, from, to_at, to);
}
int unlink(const char *path) {
  return fails("unlink", ours_path(AT_FDCWD, path)) ? -1 : REAL(unlink)(path);
}
int unlinkat(int at, const char *path, int flags) {
  return fails("unlink", ours_path(at, path)) ? -1 : REAL(unlinkat)(at, path, flags);
}
int rmdir(const char *path) {
  return fails("rmdir", ours_path(AT_FDCWD, path)) ? -1 : REAL(rmdir)(path);
}
int fstat64(int fd, struct stat64 *found) {
  return fails("fstat", ours_fd(fd)) ? -1 : REAL(fstat64)(fd, found);
}
int fstatat64(int at, const char *path, struct stat64 *found, int flags) {
  return fails("fstatat", ours_path(at, path)) ? -1 : REAL(fstatat64)(at, path, found, flags);
}
int lstat64(const char *path, struct stat64 *found) {
  return fails("lstat", ours_path(AT_FDCWD, path)) ? -1 : REAL(lstat64)(path, found);
}
int fchmod(int fd, mode_t mode) {
  return fails("fchmod", ours_fd(fd)) ? -1 : REAL(fchmod)(fd, mode);
}
int dup2(int from, int to) {
  return fails("dup2", ours_fd(from)) ? -1 : REAL(dup2)(from, to);
}
int dup3(int from, int to, int flags) {
  return fails("dup2", ours_fd(from)) ? -1 : REAL(dup3)(from, to, flags);
}
ssize_t splice(int from, off64_t *at, int to, off64_t *to_at, size_t length, unsigned flags) {
  return fails("splice", ours_fd(to)) ? -1 : REAL(splice)(from, at, to, to_at, length, flags);
}
/* The pipe right after a copy of fd 2 was made, in one thread, is that of the recorder of native text. */
int pipe2(int ends[2], int flags) {
  int ours = after_copy;
  after_copy = 0;
  return fails("pipe", ours) ? -1 : REAL(pipe2)(ends, flags);
}
int fcntl64(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void *value = va_arg(list, void *);
  va_end(list);
  if (command == F_SETLK && fails("lock", ours_fd(fd))) return -1;
  after_copy = after_copy || (fd == 2 && command == F_DUPFD_CLOEXEC);
  return REAL(fcntl64)(fd, command, value);
}
