#include "reformer/base/note.h"

#include <mutex>
#include <utility>

namespace reformer {
namespace {

std::mutex mutex;

NoteHandler& handler() {
  static NoteHandler the_handler;
  return the_handler;
}

}  // namespace

void note(const std::string& sentence) {
  const std::lock_guard lock(mutex);
  if (handler()) handler()(sentence);
}

void set_note_handler(NoteHandler new_handler) {
  const std::lock_guard lock(mutex);
  handler() = std::move(new_handler);
}

}  // namespace reformer
