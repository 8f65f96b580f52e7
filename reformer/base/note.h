// Words for the user that are no errors. The library itself prints nothing:
// whoever shows them says how.
#pragma once

#include <functional>
#include <string>

namespace reformer {

using NoteHandler = std::function<void(const std::string& sentence)>;

// From any thread. Without a handler nobody hears of it.
void note(const std::string& sentence);

// Before threads that may have something to say; empty: none.
void set_note_handler(NoteHandler handler);

}  // namespace reformer
