// Adafactor's update of one parameter of rank >= 2.
#pragma once

#include <cstdint>

namespace reformer {

template <class T>
struct AdafactorMatrices {
  T* w;        // [matrices, rows, columns], updated
  const T* g;  // [matrices, rows, columns]
  T* r;        // [matrices, rows], updated
  T* c;        // [matrices, columns], updated
  int64_t matrices;
  int64_t rows;
  int64_t columns;
};

// Three passes: g and w for the means and RMS(w), g for RMS(y), g and w for the
// update. RMS(y) must be known before the first element changes.
template <class T>
void update_matrices(const AdafactorMatrices<T>& x, double beta2,
                     double learning_rate);

}  // namespace reformer
