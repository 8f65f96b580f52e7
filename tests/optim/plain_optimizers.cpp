#include "tests/optim/plain_optimizers.h"

#include <algorithm>
#include <cmath>

namespace reformer {
namespace {

using Numbers = std::vector<double>;

double rms(const Numbers& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

double mean(const Numbers& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

// Shazeer and Stern, Algorithms 4 and 5: s = 1, 2, ... counts steps.
class PlainAdafactor : public PlainOptimizer {
 public:
  explicit PlainAdafactor(const std::vector<int64_t>& sizes) {
    if (sizes.size() < 2) return;
    rows_ = sizes[sizes.size() - 2];
    columns_ = sizes[sizes.size() - 1];
  }

  void step(Numbers& w, const Numbers& g, double rate) override {
    ++s_;
    const Numbers v = second_moments(g);
    Numbers u(g.size());
    for (size_t i = 0; i < g.size(); ++i) u[i] = g[i] / std::sqrt(v[i]);
    const double clip = std::max(1.0, rms(u));
    const double size = std::max(1e-3, rms(w));
    for (size_t i = 0; i < w.size(); ++i) w[i] -= rate * size * u[i] / clip;
  }

 private:
  void mix(Numbers& moment, size_t i, double now) {
    const double beta2 = 1 - std::pow(s_, -0.8);
    moment.resize(std::max(moment.size(), i + 1));
    moment[i] = beta2 * moment[i] + (1 - beta2) * now;
  }

  Numbers second_moments(const Numbers& g) {
    Numbers squares(g.size());
    for (size_t i = 0; i < g.size(); ++i) squares[i] = g[i] * g[i] + 1e-30;
    if (rows_ == 0) {
      for (size_t i = 0; i < g.size(); ++i) mix(v_, i, squares[i]);
      return v_;
    }
    Numbers v(g.size());
    const int64_t matrices = g.size() / (rows_ * columns_);
    for (int64_t m = 0; m < matrices; ++m) factor(squares, m, v);
    return v;
  }

  void factor(const Numbers& squares, int64_t m, Numbers& v) {
    const auto at = [&](int64_t i, int64_t j) {
      return (m * rows_ + i) * columns_ + j;
    };
    for (int64_t i = 0; i < rows_; ++i) {
      Numbers row;
      for (int64_t j = 0; j < columns_; ++j) row.push_back(squares[at(i, j)]);
      mix(r_, m * rows_ + i, mean(row));
    }
    for (int64_t j = 0; j < columns_; ++j) {
      Numbers column;
      for (int64_t i = 0; i < rows_; ++i) column.push_back(squares[at(i, j)]);
      mix(c_, m * columns_ + j, mean(column));
    }
    const auto first = r_.begin() + m * rows_;
    const double mean_r = mean(Numbers(first, first + rows_));
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < columns_; ++j) {
        v[at(i, j)] = r_[m * rows_ + i] * c_[m * columns_ + j] / mean_r;
      }
    }
  }

  double s_ = 0;
  int64_t rows_ = 0;  // 0: not factored
  int64_t columns_ = 0;
  Numbers v_, r_, c_;
};

class PlainAdam : public PlainOptimizer {
 public:
  PlainAdam(double beta1, double beta2, double decay)
      : beta1_(beta1), beta2_(beta2), decay_(decay) {}

  void step(Numbers& w, const Numbers& g, double rate) override {
    ++t_;
    m_.resize(w.size());
    v_.resize(w.size());
    for (size_t i = 0; i < w.size(); ++i) {
      m_[i] = beta1_ * m_[i] + (1 - beta1_) * g[i];
      v_[i] = beta2_ * v_[i] + (1 - beta2_) * g[i] * g[i];
      const double m = m_[i] / (1 - std::pow(beta1_, t_));
      const double v = v_[i] / (1 - std::pow(beta2_, t_));
      w[i] -= rate * decay_ * w[i];
      w[i] -= rate * m / (std::sqrt(v) + 1e-8);
    }
  }

 private:
  double beta1_, beta2_, decay_;
  double t_ = 0;
  Numbers m_, v_;
};

// Jordan's iteration on the matrix as it is: p(X) = (a + b X X' + c (X X')^2) X
// has the same value for a matrix and its transpose.
class PlainMuon : public PlainOptimizer {
 public:
  PlainMuon(const std::vector<int64_t>& sizes, double momentum, double decay)
      : rows_(sizes[0]),
        columns_(sizes[1]),
        momentum_(momentum),
        decay_(decay) {}

  void step(Numbers& w, const Numbers& g, double rate) override {
    m_.resize(w.size());
    Numbers x(w.size());
    double norm = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      m_[i] = momentum_ * m_[i] + (1 - momentum_) * g[i];
      x[i] = momentum_ * m_[i] + (1 - momentum_) * g[i];
      norm += x[i] * x[i];
    }
    for (double& value : x) value /= std::sqrt(norm) + 1e-7;
    for (int i = 0; i < 5; ++i) x = iterated(x);
    const double size =
        0.2 * std::sqrt(static_cast<double>(std::max(rows_, columns_)));
    for (size_t i = 0; i < w.size(); ++i) {
      w[i] = (1 - rate * decay_) * w[i] - rate * size * x[i];
    }
  }

 private:
  // (X X') Y
  Numbers squared_times(const Numbers& x, const Numbers& y) const {
    Numbers result(x.size());
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t k = 0; k < rows_; ++k) {
        double square = 0;
        for (int64_t j = 0; j < columns_; ++j) {
          square += x[i * columns_ + j] * x[k * columns_ + j];
        }
        for (int64_t j = 0; j < columns_; ++j) {
          result[i * columns_ + j] += square * y[k * columns_ + j];
        }
      }
    }
    return result;
  }

  Numbers iterated(const Numbers& x) const {
    const Numbers cubic = squared_times(x, x);
    const Numbers quintic = squared_times(x, cubic);
    Numbers result(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      result[i] = 3.4445 * x[i] - 4.7750 * cubic[i] + 2.0315 * quintic[i];
    }
    return result;
  }

  int64_t rows_, columns_;
  double momentum_, decay_;
  Numbers m_;
};

}  // namespace

std::unique_ptr<PlainOptimizer> plain_muon(const std::vector<int64_t>& sizes,
                                           double momentum, double decay) {
  return std::make_unique<PlainMuon>(sizes, momentum, decay);
}

std::unique_ptr<PlainOptimizer> plain_adafactor(
    const std::vector<int64_t>& sizes) {
  return std::make_unique<PlainAdafactor>(sizes);
}

std::unique_ptr<PlainOptimizer> plain_adam(double beta1, double beta2,
                                           double decay) {
  return std::make_unique<PlainAdam>(beta1, beta2, decay);
}

}  // namespace reformer
