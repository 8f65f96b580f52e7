// What LibTorch's header of its Gloo group wants to know of Gloo, whose own
// headers its wheel lacks. CMake puts the five names that are included before
// the one source that needs them (distributed/gloo_group.cpp). Nothing of it is
// called or defined here, so that LibTorch's own stay the only ones.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming): names that are not ours
namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {
class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};
}  // namespace transport

namespace rendezvous {

class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& data) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) = 0;
};

}  // namespace rendezvous
}  // namespace gloo
// NOLINTEND(readability-identifier-naming)
