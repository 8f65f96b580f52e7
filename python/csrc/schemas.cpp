#include <torch/library.h>

namespace reformer::python {

TORCH_LIBRARY(reformer, m) {
  m.def(
      "lsh_buckets(Tensor qk, int rounds=4, int chunk_length=128, "
      "int n_buckets=0, SymInt seed=0) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "lsh_rounds(Tensor buckets, Tensor? mask, int chunk_length, "
      "int n_buckets, int local_window, str window, bool causal) "
      "-> (Tensor order, Tensor place, Tensor interval)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "local_rounds(Tensor qk, Tensor? mask, int chunk_length, str window, "
      "bool causal) -> (Tensor order, Tensor place, Tensor interval)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "interval_attention_forward(Tensor q, Tensor? k, Tensor v, Tensor order, "
      "Tensor place, Tensor interval, Tensor? mask, int successor_heads, "
      "bool trusted) -> (Tensor output, Tensor lse, Tensor softmax)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "interval_attention_backward(Tensor d_output, Tensor q, Tensor? k, "
      "Tensor v, Tensor order, Tensor place, Tensor interval, Tensor? mask, "
      "Tensor output, Tensor lse, Tensor softmax, int successor_heads) "
      "-> (Tensor d_q, Tensor d_k, Tensor d_v)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "lsh_attention(Tensor qk, Tensor v, *, int rounds=4, "
      "int chunk_length=128, int n_buckets=0, int local_window=0, "
      "str window='trailing', bool causal=True, int successor_heads=0, "
      "SymInt seed=0, Tensor? mask=None, Tensor? buckets=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "local_attention(Tensor qk, Tensor v, *, int chunk_length=128, "
      "str window='chunk', bool causal=True, int successor_heads=0, "
      "Tensor? mask=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "interval_attention(Tensor q, Tensor? k, Tensor v, Tensor order, "
      "Tensor place, Tensor interval, *, Tensor? mask=None, "
      "int successor_heads=0) -> (Tensor output, Tensor lse)",
      {at::Tag::pt2_compliant_tag});
}

}  // namespace reformer::python
