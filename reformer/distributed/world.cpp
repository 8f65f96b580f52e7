#include "reformer/distributed/world.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "reformer/config/config_json.h"

namespace reformer {
namespace {

constexpr char kEnd = '\0';  // of a fact's name, and of what is said of it
constexpr size_t kMostShown = 200;
constexpr double kDay = 86400;  // seconds
constexpr std::chrono::milliseconds kPoll{20};
constexpr int64_t kMostNamed = 8;

bool is_path(const std::string& key) {
  return key == "task.data" || key == "task.validation" || key == "task.test" ||
         key == "task.cache" || key == "task.tokenizer";
}

std::string packed(const RankFacts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) {
    text += name + kEnd + value + kEnd;
  }
  return text;
}

RankFacts unpacked(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find(kEnd, at);
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  RankFacts facts;
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    facts.emplace_back(words[i], words[i + 1]);
  }
  return facts;
}

std::string shown(const std::string& value) {
  if (value.empty()) return "none";
  return value.size() <= kMostShown ? value
                                    : value.substr(0, kMostShown) + "...";
}

// Where they are of different programs, one may have more to say.
void require_same(const RankFacts& first, const RankFacts& other,
                  int64_t rank) {
  static const std::pair<std::string, std::string> kNothing;
  for (size_t i = 0; i < std::max(first.size(), other.size()); ++i) {
    const auto& a = i < first.size() ? first[i] : kNothing;
    const auto& b = i < other.size() ? other[i] : kNothing;
    if (a == b) continue;
    const std::string& name = a.first.empty() ? b.first : a.first;
    throw CommonError("ranks must be alike in " + name + ": rank " +
                      std::to_string(rank) + " has " + shown(b.second) +
                      ", rank 0 " + shown(a.second));
  }
}

std::string missing(const RankStore& store, int64_t size) {
  std::string names;
  int64_t count = 0;
  for (int64_t rank = 0; rank < size; ++rank) {
    if (store.find("here/" + std::to_string(rank))) continue;
    if (++count <= kMostNamed) {
      names += (names.empty() ? "" : ", ") + std::to_string(rank);
    }
  }
  return names + (count > kMostNamed ? ", ..." : "");
}

void wait_for_all(const RankStore& store, const Ranks& ranks, double timeout) {
  store.set("here/" + std::to_string(ranks.rank), "yes");
  store.add("here", 1);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout);
  while (store.add("here", 0) < ranks.size) {
    require(std::chrono::steady_clock::now() < end, "of ", ranks.size,
            " ranks these have not come within ", timeout,
            " s (distributed.timeout): ", missing(store, ranks.size));
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace

RankFacts setting_facts(const Config& config) {
  RankFacts facts;
  for (const auto& setting : settings_help(config)) {
    if (!is_path(setting.key)) facts.emplace_back(setting.key, setting.value);
  }
  return facts;
}

World::World(const Ranks& ranks, const RankStore& store, double timeout)
    : ranks_(ranks), store_(store), timeout_(timeout) {
  wait_for_all(store, ranks, timeout_);
  make(control_, {"control", ranks.rank, ranks.size});
}

void World::connect(const Config& config, at::Device device) {
  RankFacts facts = setting_facts(config);
  facts.emplace_back("the kind of device", c10::DeviceTypeName(device.type()));
  require_alike(facts);
  const int64_t sharing = config.train.sequence_parallel;
  require_of_all(ranks_.size % sharing == 0,
                 "train.sequence_parallel: a divisor of the number of ranks, ",
                 ranks_.size, ", is required, got ", sharing);
  sequence_parallel_ = sharing;
  CommunicatorPlace place{"sums", ranks_.rank, ranks_.size, device,
                          config.distributed.backend};
  make(sums_, place);
  if (sharing == 1) return;
  place.name = "sequence" + std::to_string(data_rank());
  place.rank = ranks_.rank % sharing;
  place.size = sharing;
  make(sequence_, place);
}

// Others are waited for so long while it is made, and afterwards for as long as
// a watch allows.
void World::make(std::unique_ptr<Communicator>& group,
                 CommunicatorPlace place) {
  place.timeout = timeout_;
  auto made = std::make_unique<Communicator>(store_, place);
  if (watch_) made->set_timeout(kDay);
  const std::lock_guard<std::mutex> lock(groups_mutex_);
  group = std::move(made);
}

std::vector<Communicator*> World::groups() const {
  const std::lock_guard<std::mutex> lock(groups_mutex_);
  std::vector<Communicator*> found;
  for (auto* group : {control_.get(), sums_.get(), sequence_.get()}) {
    if (group != nullptr) found.push_back(group);
  }
  return found;
}

void World::require_alike(const RankFacts& facts) {
  const auto all = control_->gathered(packed(facts));
  const auto first = unpacked(all[0]);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    require_same(first, unpacked(all[rank]), static_cast<int64_t>(rank));
  }
}

bool World::any(bool yes) {
  if (alone()) return yes;
  return control_->gathered(at::full({1}, yes ? 1 : 0, at::kByte))
      .any()
      .item<bool>();
}

double World::first_ones(double number) {
  if (alone()) return number;
  return control_->gathered(at::full({1}, number, at::kDouble))[0]
      .item<double>();
}

void World::watch(RankWatch::OnFault on_fault) {
  for (auto* group : groups()) group->set_timeout(kDay);
  watch_ = std::make_unique<RankWatch>(
      store_, ranks_, timeout_, [this] { return progress(); },
      std::move(on_fault));
}

RankProgress World::progress() const {
  RankProgress sum;
  for (const auto* group : groups()) {
    sum.begun += group->begun();
    sum.waiting = std::max(sum.waiting, group->waiting());
  }
  return sum;
}

double World::waited() const {
  double sum = 0;
  for (const auto* group : groups()) sum += group->waited();
  return sum;
}

int64_t World::sent_bytes() const {
  int64_t sum = 0;
  for (const auto* group : groups()) sum += group->sent_bytes();
  return sum;
}

void World::shut_down() {
  if (sequence_) sequence_->shut_down();
  sums_->shut_down();
  control_->barrier();
  if (watch_) watch_->end();
  // Nobody goes, and the store with the first one, while others still watch.
  control_->set_timeout(timeout_);
  control_->barrier();
  control_->shut_down();
}

}  // namespace reformer
