// Loaded into the real server: what a test cannot ask of a real disk and a real clock.
//
//   SHIM_ARMED=FILE     while FILE exists, its words are in force:
//                         "sync N"  the N-th sync of the log from then on fails with EIO, all others succeed
//                         "full"    every write to the log fails with ENOSPC
//                         "slow N"  every sync of the log takes N seconds
//   SHIM_DURABLE=DIR    what each file of the log was at its last sync is in DIR: what a power cut would leave
//   SHIM_CLOCK=MILLIS   the time of day jumps by up to an hour, forward and back, this often
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static atomic_long syncs;

// The name of a file of the log, or nothing.
static const char *log_name(int fd, char *path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, size - 1);
  if (length <= 0) return NULL;
  path[length] = 0;
  const char *name = strrchr(path, '/');
  return name && strncmp(name, "/log.db", 7) == 0 && !strstr(name, "-shm") ? name + 1 : NULL;
}

// Whether this word is in force; gives the number after it.
static int armed(const char *word, long *number) {
  const char *file = getenv("SHIM_ARMED");
  char text[64] = {0};
  int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return 0;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0 || strncmp(text, word, strlen(word)) != 0) return 0;
  *number = atol(text + strlen(word));
  return 1;
}

static void keep(const char *path, const char *name) {
  const char *folder = getenv("SHIM_DURABLE");
  if (!folder) return;
  char from[64 * 1024], temporary[4096], kept[4096];
  snprintf(temporary, sizeof temporary, "%s/%ld-%s", folder, (long)syscall(SYS_gettid), name);
  snprintf(kept, sizeof kept, "%s/%s", folder, name);
  int in = open(path, O_RDONLY | O_CLOEXEC), out = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ssize_t length;
  while ((length = read(in, from, sizeof from)) > 0)
    if (syscall(SYS_write, out, from, length) != length) abort();
  close(in);
  close(out);
  if (rename(temporary, kept) != 0) abort();
}

// A name is what a power cut leaves once its folder was synced.
static void keep_name(int fd) {
  const char *folder = getenv("SHIM_DURABLE");
  char link[64], path[2048], named[4096], draft[4096], kept[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = folder ? readlink(link, path, sizeof path - 1) : -1;
  if (length <= 0) return;
  path[length] = 0;
  snprintf(named, sizeof named, "%s/log.db", path);
  snprintf(draft, sizeof draft, "%s/log.db.draft", folder);
  snprintf(kept, sizeof kept, "%s/log.db", folder);
  if (access(named, F_OK) == 0 && access(draft, F_OK) == 0 && rename(draft, kept) != 0) abort();
}

static int synced(long call, int fd) {
  char path[4096];
  const char *name = log_name(fd, path, sizeof path);
  long number;
  if (name && armed("sync", &number) && atomic_fetch_add(&syncs, 1) + 1 == number) {
    errno = EIO;
    return -1;
  }
  if (name && armed("slow", &number)) sleep((unsigned)number);
  int result = (int)syscall(call, fd);
  if (name && result == 0) keep(path, name);
  if (!name && result == 0) keep_name(fd);
  return result;
}

static int is_full(int fd) {
  char path[4096];
  long number;
  if (!log_name(fd, path, sizeof path) || !armed("full", &number)) return 0;
  errno = ENOSPC;
  return 1;
}

int fsync(int fd) { return synced(SYS_fsync, fd); }

int fdatasync(int fd) { return synced(SYS_fdatasync, fd); }

ssize_t write(int fd, const void *bytes, size_t size) {
  return is_full(fd) ? -1 : syscall(SYS_write, fd, bytes, size);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
  return is_full(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, size, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { return pwrite64(fd, bytes, size, at); }

int clock_gettime(clockid_t clock, struct timespec *time) {
  static const long jumps[] = {0, 3600, -3600, 10, -10, 600};
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  const char *every = getenv("SHIM_CLOCK");
  if (result == 0 && clock == CLOCK_REALTIME && every) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    long period = (now.tv_sec * 1000 + now.tv_nsec / 1000000) / atol(every);
    time->tv_sec += jumps[period % 6];
  }
  return result;
}
