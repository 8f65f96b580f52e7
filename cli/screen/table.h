// Tables of right-aligned columns, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reformer::cli {

struct Column {
  int width;
  const char* group;  // above the name, where columns belong together
  const char* name;
};

// Two lines: groups and names.
std::string table_head(const std::vector<Column>& columns);

// As many cells as columns.
std::string table_row(const std::vector<Column>& columns,
                      const std::vector<std::string>& cells);

// "12.30": a cell with so many digits after the point, and a unit.
std::string fixed(double value, int digits, const char* unit = "");

// "+0.12", "-0.12": the same of a difference.
std::string signed_number(double value, int digits);

// "1 round", "2 rounds".
std::string counted(int64_t n, const std::string& what);

// Three significant digits or all of the whole ones: 0.345, 12.3, 12345.
std::string milliseconds(double seconds);

}  // namespace reformer::cli
