#include "cli/bench/kernel_profile.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "cli/bench/timing.h"
#include "cli/screen/table.h"

namespace reformer::cli {
namespace {

using torch::autograd::profiler::ActivityType;

struct KernelTime {
  std::string name;
  int64_t calls = 0;
  double seconds = 0;
};

// Without return type, namespaces and arguments, which fill whole screens:
// "void at::native::(anonymous namespace)::f<float>(int)" is f<float>.
std::string short_name(std::string name) {
  const std::string unnamed = "(anonymous namespace)::";
  for (size_t at = name.find(unnamed); at != std::string::npos;
       at = name.find(unnamed)) {
    name.erase(at, unnamed.size());
  }
  if (name.starts_with("void ")) name.erase(0, 5);
  const size_t arguments = name.find('(');
  if (arguments != std::string::npos && arguments > 0) name.resize(arguments);
  const size_t bracket = name.find('<');
  const size_t scope = name.rfind("::", bracket);
  if (scope != std::string::npos) name.erase(0, scope + 2);
  return name.substr(0, 58);
}

std::vector<KernelTime> longest_first(
    const torch::autograd::profiler::ProfilerResult& result) {
  std::map<std::string, KernelTime> by_name;
  for (const auto& event : result.events()) {
    if (event.deviceType() != c10::DeviceType::CUDA) continue;
    auto& kernel = by_name[short_name(event.name())];
    ++kernel.calls;
    kernel.seconds += 1e-9 * double(event.durationNs());
  }
  std::vector<KernelTime> kernels;
  for (auto& [name, kernel] : by_name) {
    kernel.name = name;
    kernels.push_back(kernel);
  }
  std::sort(kernels.begin(), kernels.end(),
            [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return kernels;
}

const std::vector<Column> kKernelColumns = {
    {10, "", "ms"}, {8, "", "share"}, {8, "", "calls"}};

}  // namespace

std::string kernel_profile(const std::function<void()>& work) {
  namespace profiler = torch::autograd::profiler;
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO);
  // The CPU's part too, or nothing ties kernels to this thread.
  const std::set<ActivityType> activities = {ActivityType::CPU,
                                             ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  const Stopwatch watch;
  work();
  const double whole = watch.seconds();
  const auto kernels = longest_first(*profiler::disableProfiler());
  double busy = 0;
  int64_t calls = 0;
  for (const auto& kernel : kernels) {
    busy += kernel.seconds;
    calls += kernel.calls;
  }
  std::ostringstream text;
  text << "\n" << table_head(kKernelColumns);
  constexpr size_t kShown = 32;
  for (size_t i = 0; i < std::min(kernels.size(), kShown); ++i) {
    const auto& kernel = kernels[i];
    std::string row =
        table_row(kKernelColumns, {milliseconds(kernel.seconds),
                                   fixed(100 * kernel.seconds / busy, 1, "%"),
                                   std::to_string(kernel.calls)});
    row.pop_back();
    text << row << "  " << kernel.name << "\n";
  }
  text << "GPU busy " << milliseconds(busy) << " ms in " << calls
       << " kernels and copies; the step took " << milliseconds(whole)
       << " ms under the profiler\n";
  return text.str();
}

}  // namespace reformer::cli
