#include "base/json_builder.h"

namespace godwit {
namespace {

constexpr std::size_t kFewKeys = 16;  // searched one by one, without a table

// The object as the vector that it is: the map's own operations search.
Json::object_t::Container& object_of(Json& json) { return json.get_ref<Json::object_t&>(); }

}  // namespace

// The place of `name` among the keys of the object, or their number if it is new.
std::size_t JsonBuilder::place_of(Frame& frame, const std::string& name) {
  const Json::object_t::Container& object = object_of(*frame.container);
  if (object.size() < kFewKeys) {
    std::size_t place = 0;
    while (place < object.size() && object[place].first != name) ++place;
    return place;
  }
  if (frame.places.empty())
    for (std::size_t place = 0; place < object.size(); ++place)
      frame.places.emplace(object[place].first, place);
  return frame.places.try_emplace(name, object.size()).first->second;
}

bool JsonBuilder::key(std::string& name) {
  Frame& frame = frames_.back();
  Json::object_t::Container& object = object_of(*frame.container);
  frame.slot = place_of(frame, name);
  if (frame.slot == object.size()) {
    object.emplace_back(std::move(name), Json());
  } else if (equal_keys_ == EqualKeys::refused) {
    error_ = "[json] the name " + dump_json(name) + " stands twice in one object";
    return false;
  }
  return true;
}

bool JsonBuilder::parse_error(std::size_t, const std::string&, const Json::exception& what) {
  error_ = what.what();
  return false;
}

Json& JsonBuilder::put(Json value) {
  if (frames_.empty()) return root_ = std::move(value);
  Frame& frame = frames_.back();
  if (frame.container->is_array()) {
    frame.container->push_back(std::move(value));
    return frame.container->back();
  }
  return object_of(*frame.container)[frame.slot].second = std::move(value);
}

bool JsonBuilder::add(Json value) {
  put(std::move(value));
  return true;
}

bool JsonBuilder::open(Json empty) {
  frames_.push_back({.container = &put(std::move(empty)), .places = {}});
  return true;
}

bool JsonBuilder::close() {
  frames_.pop_back();
  return true;
}

}  // namespace godwit
