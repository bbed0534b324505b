/* LD_PRELOAD: of the calls on files below a folder, the n-th fails.

   They are open for writing, write, fsync, rename, mkdir, unlink, read, stat, readdir, close and their variants, of
   this process and all its threads. Nothing is counted before `arm`. What the C library calls by itself, such as
   for fwrite or closedir, is not seen. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char below[PATH_MAX];
static long calls, failing;
static int number, report = -1;

/* From now on count the calls below `folder`, and list them in the open file `to`; call `nth` fails with `error`. */
void arm(const char *folder, long nth, int error, int to) {
    snprintf(below, sizeof below, "%s/", folder);
    calls = 0, failing = nth, number = error, report = to;
}

/* Whether this call fails. `path` is relative to the folder open as `at`; if it is NULL, `at` is the file. */
static int fails(const char *call, int at, const char *path) {
    char link[64] = "/proc/self/cwd", from[PATH_MAX] = "", whole[2 * PATH_MAX];
    int before = errno;
    if (report < 0)
        return 0;
    if (path == NULL || path[0] != '/') {
        if (at != AT_FDCWD)
            snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        if (readlink(link, from, sizeof from - 1) < 0)
            from[0] = '\0';
    }
    snprintf(whole, sizeof whole, "%s%s%s", from, path && from[0] ? "/" : "", path ? path : "");
    if (strncmp(whole, below, strlen(below)) != 0)
        return errno = before, 0;
    int is_failing = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) == failing;
    dprintf(report, "%s %s%s\n", call, whole, is_failing ? " fails" : "");
    errno = is_failing ? number : before;
    return is_failing;
}

#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))
#define CALL(result, name, parameters, arguments, kind, at, path) \
    result name parameters { return fails(kind, at, path) ? -1 : NEXT(name) arguments; }
#define OPEN(name, parameters, arguments, at) \
    int name parameters { \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = __OPEN_NEEDS_MODE(flags) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        return (flags & O_ACCMODE) != O_RDONLY && fails("open", at, path) ? -1 : NEXT(name) arguments; \
    }

/* A file that cannot be closed is closed nevertheless, as by the kernel. */
int close(int file) {
    int is_failing = fails("close", file, NULL), error = errno, closed = NEXT(close)(file);
    return is_failing ? errno = error, -1 : closed;
}

#define READDIR(name, entry) \
    struct entry *name(DIR *folder) { \
        return fails("readdir", dirfd(folder), NULL) ? NULL : NEXT(name)(folder); \
    }

OPEN(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPEN(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode), at)
OPEN(openat64, (int at, const char *path, int flags, ...), (at, path, flags, mode), at)
CALL(ssize_t, write, (int file, const void *from, size_t size), (file, from, size), "write", file, NULL)
CALL(ssize_t, writev, (int file, const struct iovec *from, int count), (file, from, count), "write", file, NULL)
CALL(ssize_t, pwrite, (int file, const void *from, size_t size, off_t at), (file, from, size, at),
     "write", file, NULL)
CALL(ssize_t, pwrite64, (int file, const void *from, size_t size, off64_t at), (file, from, size, at),
     "write", file, NULL)
CALL(int, fsync, (int file), (file), "fsync", file, NULL)
CALL(int, fdatasync, (int file), (file), "fsync", file, NULL)
CALL(int, rename, (const char *path, const char *to), (path, to), "rename", AT_FDCWD, path)
CALL(int, renameat, (int at, const char *path, int of, const char *to), (at, path, of, to), "rename", at, path)
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), "mkdir", AT_FDCWD, path)
CALL(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), "mkdir", at, path)
CALL(int, unlink, (const char *path), (path), "unlink", AT_FDCWD, path)
CALL(int, rmdir, (const char *path), (path), "unlink", AT_FDCWD, path)
CALL(int, unlinkat, (int at, const char *path, int flags), (at, path, flags), "unlink", at, path)
CALL(ssize_t, read, (int file, void *to, size_t size), (file, to, size), "read", file, NULL)
CALL(ssize_t, readv, (int file, const struct iovec *to, int count), (file, to, count), "read", file, NULL)
CALL(ssize_t, pread, (int file, void *to, size_t size, off_t at), (file, to, size, at), "read", file, NULL)
CALL(ssize_t, pread64, (int file, void *to, size_t size, off64_t at), (file, to, size, at), "read", file, NULL)
CALL(int, stat, (const char *path, struct stat *to), (path, to), "stat", AT_FDCWD, path)
CALL(int, stat64, (const char *path, struct stat64 *to), (path, to), "stat", AT_FDCWD, path)
CALL(int, lstat, (const char *path, struct stat *to), (path, to), "stat", AT_FDCWD, path)
CALL(int, lstat64, (const char *path, struct stat64 *to), (path, to), "stat", AT_FDCWD, path)
CALL(int, fstat, (int file, struct stat *to), (file, to), "stat", file, NULL)
CALL(int, fstat64, (int file, struct stat64 *to), (file, to), "stat", file, NULL)
CALL(int, fstatat, (int at, const char *path, struct stat *to, int flags), (at, path, to, flags), "stat", at, path)
CALL(int, fstatat64, (int at, const char *path, struct stat64 *to, int flags), (at, path, to, flags),
     "stat", at, path)
CALL(int, statx, (int at, const char *path, int flags, unsigned mask, struct statx *to),
     (at, path, flags, mask, to), "stat", at, path)
READDIR(readdir, dirent)
READDIR(readdir64, dirent64)
