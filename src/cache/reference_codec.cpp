#include "cache/reference_codec.h"

#include <algorithm>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/affine_attention.h"
#include "cache/dense_attention.h"
#include "cache/reference_turbo.h"

namespace godwit::cache {
namespace {

void check_serves(const AttendCall& call) {
  const AttendSpec& spec = call.spec;
  const bool affine = call.codec.kind == CodecKind::affine;
  if (spec.selected && affine)
    fail(ErrorCode::unsupported, "attention", "selected positions over {} keys: mlx-lm has no such arithmetic",
         to_string(call.codec));
  // Positions are columns only where nothing has left the front.
  if (spec.selected && call.visibility.window > 0)
    fail(ErrorCode::unsupported, "attention", "selected positions in a layer that slides over {} tokens",
         call.visibility.window);
  if (affine && spec.soft_cap != 0.0f)
    fail(ErrorCode::unsupported, "attention", "a score cap over {} keys: mlx-lm has no such arithmetic",
         to_string(call.codec));
  if (affine && spec.sinks && !call.from_config)
    fail(ErrorCode::unsupported, "attention", "attention sinks over {} keys: mlx-lm has no such arithmetic",
         to_string(call.codec));
}

mx::array attend_affine(const AttendCall& call) {
  const AffinePlanes planes = {call.keys, call.values, call.codec};
  // mlx-optiq tiles where a layer attends its own cache and has no sinks; what borrows another layer's keys
  // goes past that.
  const bool tiled = call.from_config && !call.reads_only && !call.spec.sinks &&
                     is_tiled(call.q, call.codec, call.visibility);
  return tiled ? tiled_affine_attention(call.q, planes, call.visibility, call.spec)
               : affine_attention(call.q, planes, call.visibility, call.spec);
}

// Steps turn the output back from the rotated domain, once a query; what only reads decodes the values, so
// that its attention is the one over dense values.
mx::array attend_turbo(const AttendCall& call) {
  const mx::Dtype type = call.q.dtype();
  const mx::array keys = decode_turbo_keys(call.codec, call.keys, type);
  if (call.reads_only) {
    const mx::array values = decode_turbo_values(call.codec, call.values, type);
    return dense_attention(call.q, keys, values, call.visibility, call.spec);
  }
  const mx::array values = decode_rotated(call.codec, call.values, type);
  return inverse_transform(dense_attention(call.q, keys, values, call.visibility, call.spec));
}

mx::array attend_span(const AttendCall& call) {
  switch (call.codec.kind) {
    case CodecKind::dense:
      return (call.is_latent ? latent_attention : dense_attention)(call.q, call.keys[0], call.values[0],
                                                                   call.visibility, call.spec);
    case CodecKind::affine:
      return attend_affine(call);
    case CodecKind::turbo:
      return attend_turbo(call);
  }
  GODWIT_CHECK(false, "codec {}", static_cast<int>(call.codec.kind));
}

mx::array positions_of(const mx::array& x, int begin, int end) {
  mx::Shape stop = x.shape();
  stop[2] = end;
  return mx::contiguous(mx::slice(x, {0, 0, begin, 0}, stop));
}

std::vector<mx::array> positions_of(const std::vector<mx::array>& components, int begin, int end) {
  std::vector<mx::array> part;
  for (const mx::array& component : components) part.push_back(positions_of(component, begin, end));
  return part;
}

// Each query alone over the columns that it sees, which is what a step of its own computes: kernels and the
// order of sums depend on both counts (reference/kv.md 4.4).
mx::array attend_committed(const AttendCall& call) {
  const Visibility& v = call.visibility;
  std::vector<mx::array> answers;
  for (int i = 0; i < v.queries; ++i) {
    const int end = v.context + i + 1;
    const int begin = v.window > 0 ? std::max(0, end - v.window) : 0;
    const AttendCall one = {call.codec,
                            call.from_config,
                            call.reads_only,
                            positions_of(call.q, i, i + 1),
                            positions_of(call.keys, begin, end),
                            positions_of(call.values, begin, end),
                            {.queries = 1, .context = end - begin - 1, .window = v.window},
                            call.spec,
                            call.is_latent};
    answers.push_back(attend_span(one));
  }
  return mx::concatenate(answers, 2);
}

}  // namespace

std::vector<mx::array> encode(const Codec& codec, PlaneRole role, const mx::array& x, mx::Dtype dense_type) {
  const mx::array dense = mx::astype(x, dense_type);
  switch (codec.kind) {
    case CodecKind::dense:
      return {dense};
    case CodecKind::affine:
      return mx::quantize(dense, codec.group, codec.bits);
    case CodecKind::turbo:
      return role == PlaneRole::keys ? encode_turbo_keys(codec, dense) : encode_turbo_values(codec, dense);
  }
  GODWIT_CHECK(false, "codec {}", static_cast<int>(codec.kind));
}

mx::array decode(const Codec& codec, PlaneRole role, const std::vector<mx::array>& components,
                 mx::Dtype type) {
  switch (codec.kind) {
    case CodecKind::dense:
      return mx::astype(components[0], type);
    case CodecKind::affine:
      return mx::astype(mx::dequantize(components[0], components[1], components[2], codec.group, codec.bits),
                        type);
    case CodecKind::turbo:
      return role == PlaneRole::keys ? decode_turbo_keys(codec, components, type)
                                     : decode_turbo_values(codec, components, type);
  }
  GODWIT_CHECK(false, "codec {}", static_cast<int>(codec.kind));
}

mx::array attend(const AttendCall& call) {
  check_serves(call);
  const Visibility& v = call.visibility;
  GODWIT_CHECK(v.queries == call.q.shape(2), "{} queries, {} planned", call.q.shape(2), v.queries);
  GODWIT_CHECK(mask_form(v) == MaskForm::none || v.context + v.queries == call.keys[0].shape(2),
               "a mask of {} columns over {}", v.context + v.queries, call.keys[0].shape(2));
  const mx::array out =
      v.kind == SpanKind::committed && v.queries > 1 ? attend_committed(call) : attend_span(call);
  return mx::astype(out, call.q.dtype());
}

}  // namespace godwit::cache
