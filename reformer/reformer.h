/// @file
/// All of the library: include this, or one of the headers it includes.
///
/// - attention.h: LSH, local and full attention, on tensors.
/// - model.h: a language model that trains, saves, loads and generates.
/// - device.h: which device, how many threads.
/// - error.h: what is thrown.
/// - version.h: which version this is.
///
/// No other header is installed, and nothing but what these declare is promised
/// to stay as it is.
#pragma once

#include "reformer/attention.h"
#include "reformer/device.h"
#include "reformer/error.h"
#include "reformer/model.h"
#include "reformer/version.h"

/// Efficient Transformers for sequences of up to millions of tokens.
namespace reformer {}
