#include "cli/bench/attention_report.h"

#include <nlohmann/json.hpp>

#include "cli/screen/table.h"

namespace reformer::cli {
namespace {

// Groups are written across the border of their two columns.
const std::vector<Column> kAttentionColumns = {
    {7, "", "length"},         {7, "", "rounds"},             //
    {9, "LSH,", "forward"},    {9, " ms      ", "backward"},  //
    {10, "exact,", "forward"}, {9, " ms      ", "backward"},  //
    {10, "exact", "forward"},  {8, " / LSH  ", "both"},       //
    {8, "keys a", "query"},    {8, "over-", "flow"},
    {11, "extra", "memory"}};

std::string ratio(double exact, double ours) {
  return fixed(exact / ours, exact < 10 * ours ? 2 : 1, "x");
}

double whole(const PassTime& time) { return time.forward_s + time.backward_s; }

}  // namespace

std::string attention_json(const BenchOptions& options,
                           const AttentionMeasurement& measured) {
  using Json = nlohmann::ordered_json;
  const auto exact = [&](double PassTime::*part) {
    return measured.exact ? Json((*measured.exact).*part) : Json();
  };
  Json json;
  json["bench"] = "attention";
  json["device"] = measured.device.is_cuda() ? "cuda" : "cpu";
  json["dtype"] = name_of(options.type_on(measured.device));
  json["batch"] = options.batch;
  json["heads"] = options.heads;
  json["d_head"] = options.d_head;
  json["length"] = measured.length;
  json["rounds"] = measured.config.rounds;
  json["chunk_length"] = options.chunk_length;
  json["n_buckets"] = measured.config.n_buckets;
  json["window"] = options.window.name();
  json["local_window"] = options.local_window;
  json["data"] = options.data.name();
  json["forward_s"] = measured.lsh.forward_s;
  json["backward_s"] = measured.lsh.backward_s;
  json["exact_forward_s"] = exact(&PassTime::forward_s);
  json["exact_backward_s"] = exact(&PassTime::backward_s);
  json["keys_per_query"] = measured.keys_per_query;
  json["overflow"] = measured.overflow;
  json["extra_bytes"] = measured.extra_bytes;
  return json.dump() + "\n";
}

std::string attention_table_head() { return table_head(kAttentionColumns); }

std::string attention_table_row(const BenchOptions& options,
                                const AttentionMeasurement& measured) {
  const auto& lsh = measured.lsh;
  const auto& exact = measured.exact;
  const PassTime time = exact.value_or(PassTime());
  const auto if_exact = [&](const std::string& text) {
    return exact ? text : "-";
  };
  const double qk_bytes =
      double(c10::elementSize(options.type_on(measured.device))) *
      double(options.batch * options.heads) *
      double(measured.length * options.d_head);
  return table_row(
      kAttentionColumns,
      {std::to_string(measured.length), std::to_string(measured.config.rounds),
       milliseconds(lsh.forward_s), milliseconds(lsh.backward_s),
       if_exact(milliseconds(time.forward_s)),
       if_exact(milliseconds(time.backward_s)),
       if_exact(ratio(time.forward_s, lsh.forward_s)),
       if_exact(ratio(whole(time), whole(lsh))),
       fixed(measured.keys_per_query, 1),
       fixed(100 * measured.overflow, 1, "%"),
       fixed(double(measured.extra_bytes) / qk_bytes, 2, " x qk")});
}

}  // namespace reformer::cli
