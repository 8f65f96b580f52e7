// Where ranks leave each other words: c10d's store of keys and values.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <optional>
#include <string>

#include "reformer/distributed/ranks.h"

namespace c10d {
class Store;
}

namespace reformer {

// Copies are the same store, and may be used by several threads; one that waits
// holds the others up, so a thread that waits needs a store of its own
// (`again`).
class RankStore {
 public:
  // Waits `timeout` seconds for the one who serves it. Throws Error where it
  // cannot be reached, or its port is taken.
  RankStore(const Ranks& ranks, double timeout);

  // Of threads that play ranks: within this process.
  static RankStore within_process();

  // The same with a connection of its own.
  RankStore again() const;

  void set(const std::string& key, const std::string& value) const;

  // Waits for the key.
  std::string get(const std::string& key) const;

  // Does not wait.
  std::optional<std::string> find(const std::string& key) const;

  // Sets it where nobody has; returns what it is then.
  std::string set_once(const std::string& key, const std::string& value) const;

  // Adds to a number, 0 at first; returns the sum.
  int64_t add(const std::string& key, int64_t n) const;

  // For groups of c10d.
  const c10::intrusive_ptr<c10d::Store>& c10d_store() const { return store_; }

  // This machine's address, as those see it who reach the store.
  const std::string& address() const { return address_; }

  RankStore(const RankStore&);
  RankStore& operator=(const RankStore&) = delete;
  ~RankStore();

 private:
  RankStore(c10::intrusive_ptr<c10d::Store> store, std::string address);

  c10::intrusive_ptr<c10d::Store> store_;
  std::string address_;
};

}  // namespace reformer
