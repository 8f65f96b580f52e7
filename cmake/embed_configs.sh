#!/bin/sh
# Writes a source file that holds configs as strings.
#
#   embed_configs.sh OUTPUT CONFIG.json...
set -eu

output=$1
shift
{
  echo '// Made by cmake/embed_configs.sh.'
  echo '#include "reformer/config/embedded_configs.h"'
  echo 'std::vector<reformer::EmbeddedConfig> reformer::embedded_configs() {'
  echo '  return {'
  for config; do
    printf '{"%s", R"json(' "$(basename "$config" .json)"
    cat "$config"
    echo ')json"},'
  done
  echo '  };'
  echo '}'
} >"$output"
