#include "reformer/config/lsh_config.h"

#include "reformer/base/errors.h"

namespace reformer {

std::string name_of(Window window) {
  return window == Window::kChunk ? "chunk" : "trailing";
}

Window window_named(const std::string& name) {
  for (const Window window : {Window::kChunk, Window::kTrailing}) {
    if (name == name_of(window)) return window;
  }
  throw Error("lsh.window: chunk or trailing is required, got '" + name + "'");
}

}  // namespace reformer
