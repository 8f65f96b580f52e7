#include "cli/process/before_libraries.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace {

// Plain system calls: what a sanitizer puts in place of the library's does not
// work yet.
#define WITHOUT_SANITIZERS \
  __attribute__((no_sanitize("address", "thread", "undefined")))

// Those that are closed (`reformer … 2>&-`) are opened on /dev/null: a file
// that got such a number would have what the program says written into it.
WITHOUT_SANITIZERS void open_standard_descriptors() {
  for (long number = 0; number <= STDERR_FILENO; ++number) {
    if (syscall(SYS_fcntl, number, F_GETFD, 0) >= 0 || errno != EBADF) continue;
    // It gets the lowest free number, and those below are taken by now.
    if (syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0) != number) {
      syscall(SYS_exit_group, EXIT_FAILURE);
    }
  }
}

// MKL ends the program in a folder that was removed, with words of its own.
WITHOUT_SANITIZERS void require_working_folder() {
  static char path[4096];
  if (syscall(SYS_getcwd, path, sizeof path) >= 0 || errno != ENOENT) return;
  constexpr char kSentence[] =
      "reformer: the working folder was removed: change to another one\n";
  syscall(SYS_write, STDERR_FILENO, kSentence, sizeof kSentence - 1);
  syscall(SYS_exit_group, EXIT_FAILURE);
}

WITHOUT_SANITIZERS void prepare(int, char**, char**) {
  open_standard_descriptors();
  require_working_folder();
}

// Called by the loader before the initialisers of all libraries.
__attribute__((section(".preinit_array"),
               used)) void (*const kPrepare)(int, char**, char**) = prepare;

}  // namespace

namespace reformer::cli {

void before_libraries() { prepare(0, nullptr, nullptr); }

}  // namespace reformer::cli
