// Which tokenizer a task's tokens are of: a user's, one made of the data, or
// that of the run.
#pragma once

#include <memory>
#include <string>

#include "reformer/config/config.h"
#include "reformer/data/cache.h"
#include "reformer/data/data_identity.h"
#include "reformer/data/tokenizer.h"

namespace reformer {

// Of a new run: task.tokenizer, or for translation without one a tokenizer that
// is made of the training pairs (bitext_splits), both languages together, once
// (its cache is there the second time); null for tasks whose tokens are bytes
// or numbers. Sets config.model.vocabulary to the number of its pieces, of
// which a made one gets as many as it said, or fewer where the data has no
// more. `observer` is told of both.
std::shared_ptr<const Tokenizer> task_tokenizer(Config& config,
                                                DecodeObserver& observer);

// Of a run that was saved: `file` is Checkpoint::tokenizer. Null as above.
// Throws Error where the file is needed and empty, or its pieces are not as
// many as model.vocabulary.
std::shared_ptr<const Tokenizer> run_tokenizer(const Config& config,
                                               const std::string& file);

// Throws Error unless it has model.vocabulary pieces.
void require_vocabulary(const Config& config, const Tokenizer& tokenizer);

// So that a run that goes on can tell whether it is still the same.
DataIdentity identity_of(const Tokenizer& tokenizer);

}  // namespace reformer
