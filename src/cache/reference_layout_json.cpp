#include "cache/reference_layout_json.h"

#include <array>
#include <string_view>

#include "base/error.h"

namespace godwit::cache {
namespace {

struct Named {
  std::string_view name;
  mx::Dtype dtype;
};

const std::array<Named, 6>& dtypes() {
  static const std::array<Named, 6> all = {{{"f32", mx::float32},
                                            {"f16", mx::float16},
                                            {"bf16", mx::bfloat16},
                                            {"u32", mx::uint32},
                                            {"u8", mx::uint8},
                                            {"i8", mx::int8}}};
  return all;
}

constexpr int kMostHeads = 1 << 16, kMostFields = 1 << 20;

int bounded(const Json& value, int most) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < 1 || value.get<std::int64_t>() > most)
    fail(ErrorCode::corrupt_file, "layout", "a size is not in [1, {}]", most);
  return value.get<int>();
}

// The places of components that lie one after another, as reference_layout() puts them.
ReferenceLayout laid_out(const std::vector<std::vector<std::vector<ComponentPlace>>>& slots) {
  ReferenceLayout layout;
  for (const auto& planes : slots) {
    layout.slots.push_back(planes);
    for (auto& plane : layout.slots.back())
      for (ComponentPlace& place : plane) layout.bytes = place_component(place, layout.bytes);
  }
  return layout;
}

}  // namespace

std::string dtype_name(mx::Dtype dtype) {
  for (const Named& named : dtypes())
    if (named.dtype == dtype) return std::string(named.name);
  fail(ErrorCode::internal, "layout", "a dtype that no codec stores");
}

mx::Dtype dtype_named(const Json& name) {
  if (name.is_string())
    for (const Named& named : dtypes())
      if (named.name == name.get_ref<const std::string&>()) return named.dtype;
  fail(ErrorCode::corrupt_file, "layout", "an unknown dtype");
}

Json layout_json(const ReferenceLayout& layout) {
  Json slots = Json::array();
  for (const SlotPlaces& planes : layout.slots) {
    Json plane_list = Json::array();
    for (const auto& plane : planes) {
      Json components = Json::array();
      for (const ComponentPlace& place : plane)
        components.push_back(Json::array({dtype_name(place.dtype), place.heads, place.fields}));
      plane_list.push_back(std::move(components));
    }
    slots.push_back(std::move(plane_list));
  }
  return slots;
}

ReferenceLayout layout_from_json(const Json& json, std::size_t slots) {
  if (!json.is_array() || json.size() != slots) fail(ErrorCode::corrupt_file, "layout", "not {} layers", slots);
  std::vector<SlotPlaces> places;
  for (const Json& planes : json) {
    SlotPlaces& slot = places.emplace_back();
    if (!planes.is_array() || planes.size() > 3) fail(ErrorCode::corrupt_file, "layout", "no planes");
    for (const Json& components : planes) {
      auto& plane = slot.emplace_back();
      if (!components.is_array() || components.size() > 3) fail(ErrorCode::corrupt_file, "layout", "no components");
      for (const Json& component : components) {
        if (!component.is_array() || component.size() != 3) fail(ErrorCode::corrupt_file, "layout", "no component");
        plane.push_back(
            {dtype_named(component[0]), bounded(component[1], kMostHeads), bounded(component[2], kMostFields), 0});
      }
    }
  }
  return laid_out(places);
}

}  // namespace godwit::cache
