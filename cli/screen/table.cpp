#include "cli/screen/table.h"

#include <iomanip>
#include <sstream>

namespace reformer::cli {

std::string table_head(const std::vector<Column>& columns) {
  std::vector<std::string> groups;
  std::vector<std::string> names;
  for (const auto& column : columns) {
    groups.emplace_back(column.group);
    names.emplace_back(column.name);
  }
  return table_row(columns, groups) + table_row(columns, names);
}

std::string table_row(const std::vector<Column>& columns,
                      const std::vector<std::string>& cells) {
  std::ostringstream row;
  for (size_t i = 0; i < columns.size(); ++i) {
    row << std::setw(columns[i].width) << cells.at(i);
  }
  const std::string text = row.str();
  return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

std::string fixed(double value, int digits, const char* unit) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value << unit;
  return text.str();
}

std::string signed_number(double value, int digits) {
  return std::string(value < 0 ? "" : "+").append(fixed(value, digits));
}

std::string counted(int64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string milliseconds(double seconds) {
  const double ms = seconds * 1e3;
  return fixed(ms, ms < 1 ? 3 : ms < 10 ? 2 : ms < 100 ? 1 : 0);
}

}  // namespace reformer::cli
