#include "reformer/version.h"

namespace reformer {

const char* version() { return REFORMER_VERSION; }

}  // namespace reformer
