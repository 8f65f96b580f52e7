#include "cli/reproduce/step_costs.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/bench/measure_step.h"
#include "cli/process/machine.h"
#include "cli/reproduce/experiment_settings.h"
#include "cli/reproduce/json_numbers.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/base/json_text.h"
#include "reformer/model/prediction.h"

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const std::vector<Column> kColumns = {
    {12, "", "series"},  {8, "", "layers"},        {8, "", "length"},
    {7, "", "batch"},    {10, "ms a", "step"},     {10, "us a", "token"},
    {10, "peak", "MiB"}, {12, "without", "states"}};

constexpr int64_t kMostBytes = int64_t{1} << 60;

StepCost cost_of(const Json& row) {
  StepCost cost;
  row.at("row").get_to(cost.row);
  row.at("series").get_to(cost.series);
  const auto whole = [&](const char* key, int64_t& value, int64_t least,
                         int64_t most) {
    value = whole_number_in(row.at(key), key, least, most);
  };
  whole("layers", cost.layers, 1, kMaxLength);
  whole("length", cost.length, 1, kMaxLength);
  whole("batch", cost.batch, 1, kMaxLength);
  row.at("step_s").get_to(cost.step_s);
  whole("peak_bytes", cost.peak_bytes, -kMostBytes, kMostBytes);
  whole("rest_bytes", cost.rest_bytes, -kMostBytes, kMostBytes);
  whole("parameters", cost.parameters, 0, kMostBytes);
  row.at("machine").get_to(cost.machine);
  return cost;
}

std::vector<StepCost> read_costs(const std::string& path) {
  std::vector<StepCost> costs;
  if (!std::filesystem::exists(path)) return costs;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) {
    const std::string where =
        path + ", line " + std::to_string(costs.size() + 1);
    const char* const advice = "; remove the file to measure again";
    try {
      costs.push_back(cost_of(parse_json<Json>(line)));
    } catch (const Error& error) {
      throw Error(where + ": is no measurement: " + error.what() + advice);
    } catch (const Json::exception&) {  // a key is missing, or a text a number
      throw Error(where + ": is no measurement" + advice);
    }
  }
  return costs;
}

StepCost measure(const CostPoint& point, at::Device device) {
  const Config& config = point.config;
  const auto measured = measure_step(config, device, /*repeats=*/0);
  const auto held = predict_memory(config, device.type()).peak;
  StepCost cost;
  cost.row = point.row;
  cost.series = point.series;
  cost.layers = config.model.layers;
  cost.length = config.train.length;
  cost.batch = config.train.batch;
  cost.step_s = measured.step_s;
  cost.peak_bytes = measured.peak_bytes;
  cost.rest_bytes = measured.peak_bytes - held.parameters - held.gradients -
                    held.optimizer_state - held.bucket_ids;
  cost.parameters = measured.parameters;
  cost.machine = describe_machine(device);
  return cost;
}

std::string mebibytes(int64_t bytes) {
  return fixed(double(bytes) / (1 << 20), 1);
}

const StepCost* find(const std::vector<StepCost>& costs,
                     const CostPoint& point) {
  for (const auto& cost : costs) {
    if (cost.is_of(point)) return &cost;
  }
  return nullptr;
}

std::string head() { return std::string("\n").append(table_head(kColumns)); }

std::string table_line(const StepCost& cost) {
  return table_row(kColumns,
                   {cost.series, std::to_string(cost.layers),
                    std::to_string(cost.length), std::to_string(cost.batch),
                    milliseconds(cost.step_s), fixed(cost.us_per_token(), 2),
                    mebibytes(cost.peak_bytes), mebibytes(cost.rest_bytes)});
}

}  // namespace

double StepCost::us_per_token() const {
  return step_s * 1e6 / double(batch * length);
}

bool StepCost::is_of(const CostPoint& point) const {
  return row == point.row && series == point.series &&
         layers == point.config.model.layers &&
         length == point.config.train.length &&
         batch == point.config.train.batch;
}

std::optional<std::vector<StepCost>> measured_costs(
    const std::string& folder, const std::vector<CostPoint>& points,
    at::Device device, const std::atomic<bool>& stop) {
  const std::string path = (fs::path(folder) / kCostsFile).string();
  auto known = read_costs(path);
  std::vector<StepCost> costs;
  bool headed = false;
  Report report(/*json=*/false);
  for (const auto& point : points) {
    if (const auto* cost = find(known, point)) {
      costs.push_back(*cost);
      continue;
    }
    if (stop) return {};
    if (!headed) report.text(head());
    headed = true;
    report.progress("measuring " + point.series + ", length " +
                    std::to_string(point.config.train.length));
    known.push_back(measure(point, device));
    write_file_atomically(path, json_lines_of("", known));
    costs.push_back(known.back());
    report.text(table_line(costs.back()));
  }
  return costs;
}

std::string json_lines_of(const std::string& figure,
                          const std::vector<StepCost>& costs) {
  std::string lines;
  for (const auto& cost : costs) {
    Json row;
    if (!figure.empty()) row["figure"] = figure;
    row["row"] = cost.row;
    row["series"] = cost.series;
    row["layers"] = cost.layers;
    row["length"] = cost.length;
    row["batch"] = cost.batch;
    row["step_s"] = cost.step_s;
    row["us_per_token"] = cost.us_per_token();
    row["peak_bytes"] = cost.peak_bytes;
    row["rest_bytes"] = cost.rest_bytes;
    row["parameters"] = cost.parameters;
    row["machine"] = cost.machine;
    lines += row.dump() + "\n";
  }
  return lines;
}

std::string table_of(const std::vector<StepCost>& costs) {
  std::string table = head();
  for (const auto& cost : costs) table += table_line(cost);
  return table;
}

}  // namespace reformer::cli
