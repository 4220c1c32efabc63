#include "cache/reference_layout.h"

#include <mlx/allocator.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace godwit::cache {
namespace {

constexpr std::size_t kLine = 64;

bool fits(const ComponentPlace& place, const mx::array& x) {
  return x.ndim() == 4 && x.dtype() == place.dtype && x.shape(1) == place.heads && x.shape(3) == place.fields;
}

// Calls fn(bytes in the block, first token of the run, tokens) for every run of positions [begin, end) that lies
// in one block, for one head.
template <typename Fn>
void for_runs(const BlockTable& table, const ComponentPlace& place, int head, int begin, int end, Fn&& fn) {
  const std::size_t row = place.token_bytes();
  for (int at = begin; at < end;) {
    const int slot = at % kPositions, count = std::min(kPositions - slot, end - at);
    const BlockRef& block = table.blocks()[static_cast<std::size_t>(at / kPositions)];
    const std::size_t first = static_cast<std::size_t>(head) * kPositions + static_cast<std::size_t>(slot);
    fn(block->data() + place.offset + first * row, at - begin, count);
    at += count;
  }
}

mx::array read_component(const BlockTable& table, const ComponentPlace& place, int begin, int end) {
  const std::size_t row = place.token_bytes(), tokens = static_cast<std::size_t>(end - begin);
  mx::array out(mx::allocator::malloc(row * tokens * static_cast<std::size_t>(place.heads)),
                {1, place.heads, end - begin, place.fields}, place.dtype);
  auto* const bytes = static_cast<std::byte*>(out.data<void>());
  for (int head = 0; head < place.heads; ++head) {
    std::byte* const rows = bytes + static_cast<std::size_t>(head) * tokens * row;
    for_runs(table, place, head, begin, end, [&](const std::byte* from, int first, int count) {
      std::memcpy(rows + static_cast<std::size_t>(first) * row, from, static_cast<std::size_t>(count) * row);
    });
  }
  return out;
}

void write_component(const BlockTable& table, const ComponentPlace& place, const mx::array& x, int position,
                     int tokens) {
  GODWIT_CHECK(place.fields == 1 || x.strides(3) == 1, "a component whose fields do not lie together");
  const std::size_t row = place.token_bytes(), item = mx::size_of(place.dtype);
  const auto* const bytes = static_cast<const std::byte*>(x.data<void>());
  const auto head_stride = static_cast<std::size_t>(x.strides(1)) * item;
  const auto token_stride = static_cast<std::size_t>(x.strides(2)) * item;
  for (int head = 0; head < place.heads; ++head) {
    const std::byte* const rows = bytes + static_cast<std::size_t>(head) * head_stride;
    for_runs(table, place, head, position, position + tokens, [&](std::byte* to, int first, int count) {
      for (int t = 0; t < count; ++t)
        std::memcpy(to + static_cast<std::size_t>(t) * row,
                    rows + static_cast<std::size_t>(first + t) * token_stride, row);
    });
  }
}

}  // namespace

std::size_t ComponentPlace::token_bytes() const { return static_cast<std::size_t>(fields) * mx::size_of(dtype); }

bool ComponentPlace::operator==(const ComponentPlace& other) const {
  return dtype == other.dtype && heads == other.heads && fields == other.fields && offset == other.offset;
}

std::size_t place_component(ComponentPlace& place, std::size_t at) {
  place.offset = at;
  const std::size_t bytes = place.token_bytes() * static_cast<std::size_t>(kPositions * place.heads);
  return at + (bytes + kLine - 1) / kLine * kLine;
}

ReferenceLayout reference_layout(const std::vector<const std::vector<Components>*>& slots) {
  ReferenceLayout layout;
  for (const std::vector<Components>* planes : slots) {
    SlotPlaces& places = layout.slots.emplace_back();
    for (const Components& plane : *planes) {
      auto& components = places.emplace_back();
      for (const mx::array& x : plane) {
        components.push_back({x.dtype(), x.shape(1), x.shape(3), 0});
        layout.bytes = place_component(components.back(), layout.bytes);
      }
    }
  }
  return layout;
}

void check_layout(const SlotPlaces& places, const std::vector<Components>& planes) {
  GODWIT_CHECK(planes.size() == places.size(), "{} planes, {} were stored before", planes.size(), places.size());
  for (std::size_t p = 0; p < planes.size(); ++p) {
    GODWIT_CHECK(planes[p].size() == places[p].size(), "plane {} has another codec than before", p);
    for (std::size_t c = 0; c < planes[p].size(); ++c)
      GODWIT_CHECK(fits(places[p][c], planes[p][c]), "plane {}, component {}: shape or dtype changed", p, c);
  }
}

void write_planes(const BlockTable& table, const SlotPlaces& places, const std::vector<Components>& planes,
                  int position, int tokens) {
  for (std::size_t p = 0; p < planes.size(); ++p)
    for (std::size_t c = 0; c < planes[p].size(); ++c)
      write_component(table, places[p][c], planes[p][c], position, tokens);
}

Components read_plane(const BlockTable& table, const std::vector<ComponentPlace>& places, int begin, int end) {
  Components plane;
  for (const ComponentPlace& place : places) plane.push_back(read_component(table, place, begin, end));
  return plane;
}

}  // namespace godwit::cache
