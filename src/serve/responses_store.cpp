#include "serve/responses_store.h"

#include <utility>

namespace godwit::serve {
namespace {

// Counted as text; the tree in memory takes a few times as much.
std::size_t size_of(const Json& value) { return dump_json(value).size(); }

// Takes its bytes off the meter when the last one lets go of it.
template <typename T>
std::shared_ptr<const T> metered(T value, std::size_t bytes,
                                 const std::shared_ptr<std::atomic<std::size_t>>& meter) {
  *meter += bytes;
  return std::shared_ptr<const T>(new T(std::move(value)), [meter, bytes](const T* held) {
    delete held;
    *meter -= bytes;
  });
}

void append(Json& target, const Json& items, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) target.push_back(items[i]);
}

}  // namespace

Json ResponseStore::Record::input_items() const {
  Json items = Json::array();
  for (const Turn& turn : turns) append(items, *turn, turn->size() - (turn == turns.back() ? outputs : 0));
  return items;
}

Json ResponseStore::Record::all_items() const {
  Json items = Json::array();
  for (const Turn& turn : turns) append(items, *turn, turn->size());
  return items;
}

ResponseStore::Turn ResponseStore::measured(Json items) const {
  const std::size_t bytes = size_of(items);
  return metered(std::move(items), bytes, bytes_);
}

void ResponseStore::drop(Entries::iterator entry) {
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

void ResponseStore::drop_old(std::int64_t now) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto at = entry++;
    if (now - at->made > limits_.seconds) drop(at);
  }
}

ResponseStore::Entries::iterator ResponseStore::find_entry(std::string_view id, std::int64_t now) {
  drop_old(now);
  const auto at = by_id_.find(std::string(id));
  return at == by_id_.end() ? entries_.end() : at->second;
}

void ResponseStore::put(const std::string& id, Json response, std::vector<Turn> earlier, Json items,
                        std::size_t outputs, std::int64_t now) {
  const std::scoped_lock lock(mutex_);
  drop_old(now);
  const std::size_t own = size_of(response) + (earlier.size() + 1) * sizeof(Turn) + id.size();
  if (own + size_of(items) > limits_.bytes) return;
  Record record{.response = std::move(response), .turns = std::move(earlier), .outputs = outputs};
  record.turns.push_back(measured(std::move(items)));
  entries_.push_front({.id = id, .record = metered(std::move(record), own, bytes_), .made = now});
  by_id_[id] = entries_.begin();
  while (*bytes_ > limits_.bytes && !entries_.empty()) drop(std::prev(entries_.end()));
}

std::shared_ptr<const ResponseStore::Record> ResponseStore::find(std::string_view id, std::int64_t now) {
  const std::scoped_lock lock(mutex_);
  const auto entry = find_entry(id, now);
  if (entry == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->record;
}

bool ResponseStore::erase(std::string_view id, std::int64_t now) {
  const std::scoped_lock lock(mutex_);
  const auto entry = find_entry(id, now);
  if (entry == entries_.end()) return false;
  drop(entry);
  return true;
}

std::optional<Json> ResponseStore::find_item(std::string_view id, std::int64_t now) {
  const std::scoped_lock lock(mutex_);
  drop_old(now);
  for (const Entry& entry : entries_)
    for (const Json& item : *entry.record->turns.back())
      if (item.value("id", "") == id) return item;
  return std::nullopt;
}

}  // namespace godwit::serve
