// What the user probably meant.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace reformer {

// Insertions, deletions and replacements of one character that make one of the
// other (Levenshtein).
std::size_t edit_distance(const std::string& a, const std::string& b);

// The known name with the smallest edit distance to `name`, the first of
// equals. A name without a dot is compared with what follows the dots of the
// known ones: "rounds" means "lsh.rounds"; one with a dot is near to what has
// the same after it: "train.block" means "model.block". Nothing where no name
// is near: within a third of its characters, or two.
std::optional<std::string> nearest_name(const std::string& name,
                                        const std::vector<std::string>& known);

// ", the nearest is lsh.rounds" for the end of a sentence, or nothing.
std::string nearest_hint(const std::string& name,
                         const std::vector<std::string>& known);

}  // namespace reformer
