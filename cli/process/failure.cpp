#include "cli/process/failure.h"

#include <c10/util/Exception.h>

#include <cstdio>
#include <exception>
#include <new>

#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/base/printable.h"
#include "reformer/distributed/ranks.h"

namespace reformer::cli {
namespace {

constexpr int kFailed = 1;
constexpr size_t kMostCharacters = 4000;

// LibTorch's messages go on with stack traces.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// LibTorch has no type of its own for a CPU without memory, and for a GPU a
// paragraph.
std::string advice_on(const c10::Error& error) {
  const std::string message = first_line(error.what_without_backtrace());
  const std::string tried = "ried to allocate ";
  const size_t at = message.find(tried);
  if (at == std::string::npos) return message;
  const size_t from = at + tried.size();
  const std::string amount =
      message.substr(from, message.find(". ", from) - from);
  return std::string(message.starts_with("CUDA") ? "the GPU is " : "") +
         "out of memory: you tried to allocate " + amount +
         "; try shorter or fewer sequences";
}

}  // namespace

Failure failure_of_current_exception() {
  try {
    throw;
  } catch (const OutputClosed&) {
    return {0, ""};
  } catch (const Interrupted&) {
    return {status_of_stop(), ""};
  } catch (const Error& error) {
    return {kFailed, error.what()};
  } catch (const std::bad_alloc&) {
    return {kFailed, "out of memory: try shorter or fewer sequences"};
  } catch (const c10::Error& error) {
    return {kFailed, advice_on(error)};
  } catch (const std::exception& error) {
    return {kFailed, first_line(error.what())};
  }
}

// Sentences name files and settings, which may command a terminal.
int fail(int status, const std::string& message) {
  std::fprintf(stderr, "reformer: %s%s\n", rank_prefix().c_str(),
               printable(message, kMostCharacters).c_str());
  return status;
}

}  // namespace reformer::cli
