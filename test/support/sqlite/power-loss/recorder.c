/*
 * Records what a process does to some files, in order, so that a test can compute what a power loss leaves of them.
 *
 *   LD_PRELOAD=recorder.so RECORDER_PREFIX=/tmp/x/inbox.db RECORDER_LOG=/tmp/x.log node ...
 *
 * Recorded are the files whose path begins with the prefix, and the folder that they are in. An operation is appended
 * to the log before it is carried out: a header of 32 bytes (kind, path length, offset, data length), the path, the
 * data. A sync is recorded at its start, so it covers exactly the writes that were recorded before it. It is not
 * carried out: the test decides what reaches the disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define DESCRIPTORS 65536
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct header {
  uint64_t kind, path_length, offset, data_length;
};

static char *paths[DESCRIPTORS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int log_descriptor = -1;
static char prefix[4096], folder[4096];

__attribute__((constructor)) static void begin(void) {
  const char *given = getenv("RECORDER_PREFIX"), *log = getenv("RECORDER_LOG");
  if (given == NULL || log == NULL) return;
  snprintf(prefix, sizeof prefix, "%s", given);
  snprintf(folder, sizeof folder, "%s", given);
  char *end = strrchr(folder, '/');
  if (end != NULL) *end = 0;
  log_descriptor = REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int is_recorded(const char *path) {
  if (log_descriptor < 0 || path == NULL) return 0;
  return strncmp(path, prefix, strlen(prefix)) == 0 || strcmp(path, folder) == 0;
}

static const char *path_of(int descriptor) {
  return descriptor >= 0 && descriptor < DESCRIPTORS ? paths[descriptor] : NULL;
}

/* One write, so that the records of several processes do not mix. */
static void record(char kind, const char *path, uint64_t offset, const void *data, uint64_t length) {
  struct header header = {(uint64_t)kind, strlen(path), offset, length};
  struct iovec parts[] = {{&header, sizeof header}, {(void *)path, header.path_length}, {(void *)data, length}};
  ssize_t written = REAL(writev)(log_descriptor, parts, length == 0 ? 2 : 3);
  if (written != (ssize_t)(sizeof header + header.path_length + length)) abort();
}

/* Another process may create the file at the same time, so a file may be recorded as created twice. */
#define OPEN(name)                                                                                                     \
  int name(const char *path, int flags, ...) {                                                                         \
    va_list more;                                                                                                      \
    va_start(more, flags);                                                                                             \
    mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0;                                                        \
    va_end(more);                                                                                                      \
    if (!is_recorded(path)) return REAL(name)(path, flags, mode);                                                      \
    pthread_mutex_lock(&mutex);                                                                                        \
    if ((flags & O_CREAT) && access(path, F_OK) != 0) record('C', path, 0, NULL, 0);                                   \
    else if ((flags & (O_TRUNC | O_EXCL)) == O_TRUNC) record('T', path, 0, NULL, 0);                                   \
    int result = REAL(name)(path, flags, mode);                                                                        \
    if (result >= 0 && result < DESCRIPTORS) paths[result] = strdup(path);                                             \
    pthread_mutex_unlock(&mutex);                                                                                      \
    return result;                                                                                                     \
  }
OPEN(open)
OPEN(open64)

int close(int descriptor) {
  pthread_mutex_lock(&mutex);
  if (path_of(descriptor) != NULL) {
    free(paths[descriptor]);
    paths[descriptor] = NULL;
  }
  int result = REAL(close)(descriptor);
  pthread_mutex_unlock(&mutex);
  return result;
}

ssize_t write(int descriptor, const void *data, size_t length) {
  if (path_of(descriptor) == NULL) return REAL(write)(descriptor, data, length);
  pthread_mutex_lock(&mutex);
  off_t offset = lseek(descriptor, 0, SEEK_CUR);
  record('W', path_of(descriptor), (uint64_t)offset, data, length);
  ssize_t result = REAL(write)(descriptor, data, length);
  pthread_mutex_unlock(&mutex);
  return result;
}

#define PWRITE(name, type)                                                                                             \
  ssize_t name(int descriptor, const void *data, size_t length, type offset) {                                         \
    if (path_of(descriptor) == NULL) return REAL(name)(descriptor, data, length, offset);                              \
    pthread_mutex_lock(&mutex);                                                                                        \
    record('W', path_of(descriptor), (uint64_t)offset, data, length);                                                  \
    ssize_t result = REAL(name)(descriptor, data, length, offset);                                                     \
    pthread_mutex_unlock(&mutex);                                                                                      \
    return result;                                                                                                     \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define TRUNCATE(name, type)                                                                                           \
  int name(int descriptor, type length) {                                                                              \
    if (path_of(descriptor) == NULL) return REAL(name)(descriptor, length);                                            \
    pthread_mutex_lock(&mutex);                                                                                        \
    record('T', path_of(descriptor), (uint64_t)length, NULL, 0);                                                       \
    int result = REAL(name)(descriptor, length);                                                                       \
    pthread_mutex_unlock(&mutex);                                                                                      \
    return result;                                                                                                     \
  }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define SYNC(name)                                                                                                     \
  int name(int descriptor) {                                                                                           \
    if (path_of(descriptor) == NULL) return REAL(name)(descriptor);                                                    \
    pthread_mutex_lock(&mutex);                                                                                        \
    record('S', path_of(descriptor), 0, NULL, 0);                                                                      \
    pthread_mutex_unlock(&mutex);                                                                                      \
    return 0;                                                                                                          \
  }
SYNC(fsync)
SYNC(fdatasync)

int unlink(const char *path) {
  if (!is_recorded(path)) return REAL(unlink)(path);
  pthread_mutex_lock(&mutex);
  record('U', path, 0, NULL, 0);
  int result = REAL(unlink)(path);
  pthread_mutex_unlock(&mutex);
  return result;
}
