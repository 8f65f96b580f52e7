// Launches on a GPU's stream, captured instead of run, to be replayed as one.
#pragma once

namespace reformer::kernels::cuda {

// What is launched on `stream` from here on is captured. The stream must not be
// the default one. Other threads may go on allocating memory meanwhile.
void begin_capture(void* stream);

// The captured launches, ready to be replayed; destroy_graph frees them.
void* end_capture(void* stream);

// Drops what was captured.
void abandon_capture(void* stream) noexcept;

void launch_graph(void* graph, void* stream);
void destroy_graph(void* graph) noexcept;

}  // namespace reformer::kernels::cuda
