// Launches on a GPU's stream, recorded instead of run, to be repeated as one.
#pragma once

namespace reformer::kernels::cuda {

// What is launched on `stream` from here on is recorded. The stream must not be
// the default one. Other threads may go on allocating memory meanwhile.
void begin_recording(void* stream);

// The recorded launches, ready to be repeated; destroy_graph frees them.
void* end_recording(void* stream);

// Drops what was recorded.
void abandon_recording(void* stream) noexcept;

void launch_graph(void* graph, void* stream);
void destroy_graph(void* graph) noexcept;

}  // namespace reformer::kernels::cuda
