#include "reformer/distributed/rank_store.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
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

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Where the store is; null: nowhere that `hints` allow, for the reason that
// getaddrinfo gives.
Addresses addresses_of(const Ranks& ranks, const addrinfo* hints,
                       int* fault = nullptr) {
  addrinfo* found = nullptr;
  const std::string port = std::to_string(ranks.port);
  const int status =
      getaddrinfo(ranks.host.c_str(), port.c_str(), hints, &found);
  if (fault != nullptr) *fault = status;
  return {status == 0 ? found : nullptr, &freeaddrinfo};
}

// Hosts' names often lead to the loopback device, which other machines cannot
// reach; the way to the store says which address they can.
std::string address_for(const Ranks& ranks) {
  int fault = 0;
  const Addresses found = addresses_of(ranks, nullptr, &fault);
  require(found != nullptr, "MASTER_ADDR: ", ranks.host,
          " is the name of no machine: ", gai_strerror(fault));
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    const std::string address = own_address_towards(*one);
    if (!address.empty()) return address;
  }
  throw Error("MASTER_ADDR: no way leads from here to " + ranks.host);
}

bool is_loopback(const addrinfo& place) {
  if (place.ai_family == AF_INET6) {
    const auto& address =
        reinterpret_cast<const sockaddr_in6*>(place.ai_addr)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&address);
  }
  const auto& address =
      reinterpret_cast<const sockaddr_in*>(place.ai_addr)->sin_addr;
  return ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

// A socket that is bound there, for who serves the store to listen at; none
// where that cannot be, which c10d will find as well and say.
std::optional<int> bound_to(const addrinfo& place) {
  const int file = socket(place.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return {};
  const int yes = 1;
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(file, place.ai_addr, place.ai_addrlen) == 0) return file;
  close(file);
  return {};
}

// By itself c10d listens at all of the machine's addresses, and asks nobody who
// he is. Where rank 0 has a name for its machine that leads to the machine
// itself, that need not hold of the others' ("node1" in /etc/hosts): unless all
// are here, only what is no name is believed.
std::optional<int> loopback_socket(const Ranks& ranks) {
  const bool all_here =
      ranks.local_size >= ranks.size || ranks.host == "localhost";
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  if (!all_here) hints.ai_flags = AI_NUMERICHOST;
  for (const int family : {AF_INET, AF_INET6}) {
    hints.ai_family = family;
    const Addresses found = addresses_of(ranks, &hints);
    if (found == nullptr) continue;
    return is_loopback(*found) ? bound_to(*found) : std::nullopt;
  }
  return {};
}

StorePointer connected(const Ranks& ranks, double timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(ranks.port);
  options.isServer = ranks.first() && !ranks.agent_store;
  options.waitWorkers = false;
  if (options.isServer) options.masterListenFd = loopback_socket(ranks);
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
