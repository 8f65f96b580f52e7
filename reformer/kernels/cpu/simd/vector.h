// Vectors of the width that this instruction set has, as compiler vector
// types: one source, compiled once for each set into its own namespace.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#ifndef REFORMER_ISA
#error "compiled once for each instruction set, with REFORMER_ISA its name"
#endif

namespace reformer::kernels::cpu::REFORMER_ISA {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using Index = int32_t;  // an integer as wide as an element
  typedef float type __attribute__((vector_size(kVectorBytes)));
  typedef int32_t index __attribute__((vector_size(kVectorBytes)));
  typedef uint32_t bits __attribute__((vector_size(kVectorBytes)));
};
template <>
struct VectorOf<double> {
  using Index = int64_t;
  typedef double type __attribute__((vector_size(kVectorBytes)));
  typedef int64_t index __attribute__((vector_size(kVectorBytes)));
  typedef uint64_t bits __attribute__((vector_size(kVectorBytes)));
};

template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
using IndexVector = typename VectorOf<T>::index;
template <class T>
using BitsVector = typename VectorOf<T>::bits;
template <class T>
using Index = typename VectorOf<T>::Index;

template <class T>
inline constexpr int kLanes = kVectorBytes / sizeof(T);

template <class T>
inline constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

// From and to memory of any alignment.
template <class T>
inline Vector<T> load(const T* from) {
  Vector<T> x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}
template <class T>
inline void store(T* to, Vector<T> x) {
  std::memcpy(to, &x, sizeof(x));
}
template <class T>
inline IndexVector<T> load_index(const Index<T>* from) {
  IndexVector<T> x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}

template <class T>
inline Vector<T> all(T x) {
  return x - Vector<T>{};
}

// Pairwise, so that the additions do not wait for one another.
template <class T>
inline T sum_of(Vector<T> x) {
  T lanes[kLanes<T>];
  store(lanes, x);
  for (int half = kLanes<T> / 2; half >= 1; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// 2^x for x <= about 0; exactly 0 below 2^-126, NaN for NaN. The polynomial is
// the minimax one of degree 6 for 2^f on [-1/2, 1/2] (relative error 2e-9).
inline Vector<float> exp2_of(Vector<float> x) {
  constexpr float kRoundToInteger = 12582912.0f;  // 1.5 * 2^23
  const Vector<float> shifted = x + kRoundToInteger;
  const Vector<float> f = x - (shifted - kRoundToInteger);
  Vector<float> p = all(1.5345812e-04f);
  p = p * f + 1.3399932e-03f;
  p = p * f + 9.6184890e-03f;
  p = p * f + 5.5503288e-02f;
  p = p * f + 2.4022647e-01f;
  p = p * f + 6.9314721e-01f;
  p = p * f + 1.0f;
  BitsVector<float> bits;  // unsigned: far below -126 this wraps around
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits - 0x4B400000u + 127u) << 23;  // 0x4B400000: kRoundToInteger
  Vector<float> scale;
  std::memcpy(&scale, &bits, sizeof(scale));
  return x < -126.0f ? Vector<float>{} : p * scale;
}

// float64 serves as a reference: exactness matters, speed does not.
inline Vector<double> exp2_of(Vector<double> x) {
  for (int lane = 0; lane < kLanes<double>; ++lane)
    x[lane] = std::exp2(x[lane]);
  return x;
}

inline constexpr double kLog2E = 1.4426950408889634;

// e^x for x <= about 0. The change of base comes after whatever made x small:
// multiplied into large scores before their maximum is subtracted, it would
// cost digits.
template <class T>
inline Vector<T> exp_of(Vector<T> x) {
  return exp2_of(x * T(kLog2E));
}

// Transposes kLanes vectors in place by log2(kLanes) perfect shuffles.
template <class T>
inline void transpose(Vector<T> (&rows)[kLanes<T>]) {
  constexpr int kHalf = kLanes<T> / 2;
  IndexVector<T> low;
  IndexVector<T> high;
  for (int lane = 0; lane < kLanes<T>; ++lane) {
    low[lane] = lane / 2 + lane % 2 * kLanes<T>;
    high[lane] = low[lane] + kHalf;
  }
  for (int stage = 1; stage < kLanes<T>; stage *= 2) {
    Vector<T> mixed[kLanes<T>];
    for (int i = 0; i < kHalf; ++i) {
      mixed[2 * i] = __builtin_shuffle(rows[i], rows[i + kHalf], low);
      mixed[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + kHalf], high);
    }
    for (int i = 0; i < kLanes<T>; ++i) rows[i] = mixed[i];
  }
}

}  // namespace reformer::kernels::cpu::REFORMER_ISA
