// Does a model find again what it has read? What a text costs whose pieces all
// come twice: the second time a model that looks back needs next to nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "reformer/model/language_model.h"
#include "reformer/tasks/task.h"
#include "reformer/train/evaluation.h"

namespace reformer {

// So many bytes at the beginning of a repeat are not counted: nothing has told
// the model yet that it is one.
inline constexpr int64_t kRepeatLead = 64;

// A text with its pieces of `distance` repeated, in as many positions:
// …aabbcc, the last of which is the end of the last repeat. It shows the end of
// the text, and where a repeat ends the text goes on.
struct RepeatLayout {
  std::vector<int64_t> source;   // of each position: that of its token in the
                                 // text
  std::vector<int64_t> counted;  // positions in repeats, ascending: those in
                                 // the second half, without repeats' leads
};

// Throws Error unless kRepeatLead < distance <= length / 2.
void check_repeat_distance(int64_t length, int64_t distance);

// Throws as check_repeat_distance does; of an odd length one position is left
// out.
RepeatLayout repeat_layout(int64_t length, int64_t distance);

// Mean losses in nats, all of the same tokens.
struct RepeatLosses {
  int64_t distance = 0;
  double repeat = 0;   // in repeats
  double first = 0;    // `distance` positions earlier, where they come first
  double no_copy = 0;  // in the text as it is, in its second half
  int64_t count = 0;
};

// Of whole sequences, those of fewer batches than all from all over the split;
// one for each distance. Throws Error where repeat_layout does, for a split
// without a whole sequence and for losses that are not finite.
std::vector<RepeatLosses> losses_on_repeats(
    const LanguageModel& model, const Task& task, const EvaluatedSplit& of,
    const std::vector<int64_t>& distances);

}  // namespace reformer
