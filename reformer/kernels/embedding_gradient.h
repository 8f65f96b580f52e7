// The gradient of a table from which rows were looked up: of each row of the
// table the sum over all places that read it, in a fixed order on a GPU. (On
// the CPU LibTorch's serves.)
#pragma once

#include <cstdint>

namespace reformer::kernels {

struct EmbeddingGradientArgs {
  const int64_t* indices;  // [count], in the table
  const int32_t* order;    // [count]: 0 to count - 1, by (index, number)
  const float* d;          // [count, width]: what each lookup gets
  float* sum;              // [rows of the table, width], added to
  float* partial;          // embedding_gradient_partials(...), workspace
  int64_t count;
  int64_t width;
  int64_t d_stride;  // elements from a row of d to the next
  float scale;       // of what is added
};

namespace cuda {
int64_t embedding_gradient_partials(int64_t count, int64_t width);  // floats
void embedding_gradient(const EmbeddingGradientArgs& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
