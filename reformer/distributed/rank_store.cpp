#include "reformer/distributed/rank_store.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <memory>
#include <utility>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string text_of(const sockaddr_storage& address) {
  char text[NI_MAXHOST] = {};
  const auto size = address.ss_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                  : sizeof(sockaddr_in);
  const int fault = getnameinfo(reinterpret_cast<const sockaddr*>(&address),
                                static_cast<socklen_t>(size), text,
                                sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return fault == 0 ? text : "";
}

// Of the interface that leads to `to`; nothing is sent.
std::string own_address_towards(const addrinfo& to) {
  const int file = socket(to.ai_family, SOCK_DGRAM, 0);
  if (file < 0) return "";
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  const bool found =
      connect(file, to.ai_addr, to.ai_addrlen) == 0 &&
      getsockname(file, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  close(file);
  return found ? text_of(own) : "";
}

// Hosts' names often lead to the loopback device, which other machines cannot
// reach; the way to the store says which address they can.
std::string address_for(const Ranks& ranks) {
  addrinfo* found = nullptr;
  const std::string port = std::to_string(ranks.port);
  const int fault =
      getaddrinfo(ranks.host.c_str(), port.c_str(), nullptr, &found);
  require(fault == 0, "MASTER_ADDR: ", ranks.host,
          " is the name of no machine: ", gai_strerror(fault));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const std::string address = own_address_towards(*one);
    if (!address.empty()) return address;
  }
  throw Error("MASTER_ADDR: no way leads from here to " + ranks.host);
}

StorePointer connected(const Ranks& ranks, double timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(ranks.port);
  options.isServer = ranks.first() && !ranks.agent_store;
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(int64_t(timeout * 1000));
  const std::string place = ranks.host + ":" + std::to_string(ranks.port);
  try {
    StorePointer store =
        c10::make_intrusive<c10d::TCPStore>(ranks.host, options);
    // After a restart the agent's store still has the words of those before.
    const std::string attempt = ranks.attempt.empty() ? "0" : ranks.attempt;
    return c10::make_intrusive<c10d::PrefixStore>("reformer/" + attempt, store);
  } catch (const std::exception& error) {
    throw Error(
        (options.isServer ? "the store of the ranks cannot be served at "
                          : "the store of the ranks cannot be reached at ") +
        place + " (MASTER_ADDR, MASTER_PORT): " + first_line(error.what()));
  }
}

std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

RankStore::RankStore(StorePointer store, std::string address)
    : store_(std::move(store)), address_(std::move(address)) {}

RankStore::RankStore(const Ranks& ranks, double timeout)
    : RankStore(connected(ranks, timeout), address_for(ranks)) {}

RankStore::RankStore(const RankStore&) = default;
RankStore::~RankStore() = default;

RankStore RankStore::within_process() {
  return {c10::make_intrusive<c10d::HashStore>(), "127.0.0.1"};
}

RankStore RankStore::again() const { return {store_->clone(), address_}; }

void RankStore::set(const std::string& key, const std::string& value) const {
  store_->set(key, value);
}

std::string RankStore::get(const std::string& key) const {
  return text_of(store_->get(key));
}

std::optional<std::string> RankStore::find(const std::string& key) const {
  if (!store_->check({key})) return {};
  return text_of(store_->get(key));
}

std::string RankStore::set_once(const std::string& key,
                                const std::string& value) const {
  return store_->compareSet(key, std::string(), value);
}

int64_t RankStore::add(const std::string& key, int64_t n) const {
  return store_->add(key, n);
}

}  // namespace reformer
