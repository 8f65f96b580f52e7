// Bytes as people read them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace reformer {

// Two lower-case hexadecimal digits a byte.
std::string hex(std::span<const uint8_t> bytes);

}  // namespace reformer
