#include "reformer/kernels/adafactor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reformer/base/chunks.h"

namespace reformer::kernels::cpu {
namespace {

// What y is multiplied by, from the sums of the squares of w and y: the update
// is clipped at an RMS of 1.
double scale_of(double learning_rate, double sum_w, double sum_y,
                int64_t elements) {
  const double n = static_cast<double>(elements);
  const double size = std::max(std::sqrt(sum_w / n), kAdafactorSmallestScale);
  return learning_rate * size / std::max(1.0, std::sqrt(sum_y / n));
}

// A task's rows. Each block of rows has its own sums of columns, which are
// added afterwards: with at least 16 rows a block they cost little beside g.
constexpr int64_t kLeastRows = 16;

template <class T>
class MatrixUpdate {
 public:
  explicit MatrixUpdate(const AdafactorArgs<T>& x)
      : x_(x),
        block_rows_(std::max(kLeastRows, kChunkElements / x.columns)),
        blocks_(ceil_div(x.rows, block_rows_)),
        row_factors_(x.matrices * x.rows),
        column_factors_(x.matrices * x.columns) {}

  void run() {
    const double sum_w = accumulate_moments();
    const double sum_y = sum_over_tasks(x_.matrices * blocks_, [&](int64_t t) {
      return sum_of_updates(block(t));
    });
    const double scale = scale_of(x_.learning_rate, sum_w, sum_y,
                                  x_.matrices * x_.rows * x_.columns);
    parallel_tasks(x_.matrices * blocks_,
                   [&](int64_t t) { subtract(block(t), scale); });
  }

 private:
  // Rows [begin, end) of all matrices' rows, all of one matrix.
  struct Block {
    int64_t matrix;
    int64_t begin;
    int64_t end;
  };

  Block block(int64_t task) const {
    const int64_t matrix = task / blocks_;
    const int64_t first = task % blocks_ * block_rows_;
    const int64_t last = std::min(first + block_rows_, x_.rows);
    return {matrix, matrix * x_.rows + first, matrix * x_.rows + last};
  }

  // Returns the sum of w^2, read on the way.
  double accumulate_moments() {
    const int64_t tasks = x_.matrices * blocks_;
    std::vector<double> row_sums(x_.matrices * x_.rows);
    std::vector<T> column_sums(tasks * x_.columns);
    const double sum_w = sum_over_tasks(tasks, [&](int64_t task) {
      const Block rows = block(task);
      T* columns = column_sums.data() + task * x_.columns;
      for (int64_t i = rows.begin; i < rows.end; ++i) {
        row_sums[i] = add_squares(x_.g + i * x_.columns, columns);
      }
      return sum_of_squares(x_.w + rows.begin * x_.columns,
                            (rows.end - rows.begin) * x_.columns);
    });
    for (int64_t m = 0; m < x_.matrices; ++m) {
      update_rows(m, row_sums.data() + m * x_.rows);
      update_columns(m, column_sums.data() + m * blocks_ * x_.columns);
    }
    return sum_w;
  }

  double add_squares(const T* g, T* columns) const {
    const T epsilon = static_cast<T>(kAdafactorEpsilon);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < x_.columns; ++j) {
      const T square = g[j] * g[j] + epsilon;
      columns[j] += square;
      sum += square;
    }
    return sum;
  }

  // The factor 1 / sqrt(r_i / mean(r)), in double: the quotient may be below
  // what float32 holds, its root is not.
  void update_rows(int64_t matrix, const double* sums) {
    T* r = x_.r + matrix * x_.rows;
    double total = 0;
    for (int64_t i = 0; i < x_.rows; ++i) {
      r[i] = mixed(r[i], sums[i] / static_cast<double>(x_.columns));
      total += r[i];
    }
    const double mean = total / static_cast<double>(x_.rows);
    T* factors = row_factors_.data() + matrix * x_.rows;
    for (int64_t i = 0; i < x_.rows; ++i) {
      factors[i] = static_cast<T>(std::sqrt(mean / r[i]));
    }
  }

  void update_columns(int64_t matrix, const T* block_sums) {
    std::vector<double> sums(x_.columns);
    for (int64_t b = 0; b < blocks_; ++b) {
      for (int64_t j = 0; j < x_.columns; ++j) {
        sums[j] += block_sums[b * x_.columns + j];
      }
    }
    T* c = x_.c + matrix * x_.columns;
    T* factors = column_factors_.data() + matrix * x_.columns;
    for (int64_t j = 0; j < x_.columns; ++j) {
      c[j] = mixed(c[j], sums[j] / static_cast<double>(x_.rows));
      factors[j] = static_cast<T>(1 / std::sqrt(static_cast<double>(c[j])));
    }
  }

  T mixed(T moment, double mean) const {
    return static_cast<T>(x_.beta2 * moment + (1 - x_.beta2) * mean);
  }

  double sum_of_updates(const Block& rows) const {
    const T* factors = column_factors_.data() + rows.matrix * x_.columns;
    double sum = 0;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      sum += sum_of_updates(x_.g + i * x_.columns, row_factors_[i], factors);
    }
    return sum;
  }

  double sum_of_updates(const T* g, T row_factor, const T* factors) const {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < x_.columns; ++j) {
      const double y = g[j] * row_factor * factors[j];
      sum += y * y;
    }
    return sum;
  }

  void subtract(const Block& rows, double scale) {
    const T* factors = column_factors_.data() + rows.matrix * x_.columns;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      T* w = x_.w + i * x_.columns;
      const T* g = x_.g + i * x_.columns;
      const T factor = static_cast<T>(scale * row_factors_[i]);
#pragma omp simd
      for (int64_t j = 0; j < x_.columns; ++j) {
        w[j] -= g[j] * factor * factors[j];
      }
    }
  }

  const AdafactorArgs<T>& x_;
  int64_t block_rows_;
  int64_t blocks_;                 // of one matrix
  std::vector<T> row_factors_;     // [matrices, rows]
  std::vector<T> column_factors_;  // [matrices, columns]
};

// Updates v on the way.
template <class T>
double sum_of_updates(int64_t n, double beta2, const T* g, T* v) {
  const T keep = static_cast<T>(beta2);
  const T gain = static_cast<T>(1 - beta2);
  const T epsilon = static_cast<T>(kAdafactorEpsilon);
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; ++j) {
    v[j] = keep * v[j] + gain * (g[j] * g[j] + epsilon);
    const double y = g[j] / std::sqrt(v[j]);
    sum += y * y;
  }
  return sum;
}

template <class T>
void subtract(int64_t n, T scale, T* w, const T* g, const T* v) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) w[j] -= scale * g[j] / std::sqrt(v[j]);
}

template <class T>
void update_vector(int64_t n, double beta2, double rate, T* w, const T* g,
                   T* v) {
  const double sum_w = sum_over_chunks(n, [&](int64_t begin, int64_t end) {
    return sum_of_squares(w + begin, end - begin);
  });
  const double sum_y = sum_over_chunks(n, [&](int64_t begin, int64_t end) {
    return sum_of_updates(end - begin, beta2, g + begin, v + begin);
  });
  const T scale = static_cast<T>(scale_of(rate, sum_w, sum_y, n));
  for_each_chunk(n, [&](int64_t begin, int64_t end) {
    subtract(end - begin, scale, w + begin, g + begin, v + begin);
  });
}

template <class T>
void update(const AdafactorArgs<T>& x) {
  if (x.r != nullptr) {
    MatrixUpdate<T>(x).run();
  } else {
    update_vector(x.columns, x.beta2, x.learning_rate, x.w, x.g, x.c);
  }
}

}  // namespace

void adafactor(const AdafactorArgs<float>& args) { update(args); }
void adafactor(const AdafactorArgs<double>& args) { update(args); }

}  // namespace reformer::kernels::cpu
