// Answers of POST /v1/responses that later requests may build upon. Bounded in time and bytes; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace godwit::serve {

class ResponseStore {
 public:
  struct Limits {
    std::size_t bytes = std::size_t{32} << 20;
    std::int64_t seconds = 3600;  // since the answer was made
  };

  // The items of one request and its answer: shared by all answers that build upon it, so that each of them
  // stays whole when an earlier one is deleted.
  using Turn = std::shared_ptr<const Json>;
  struct Record {
    Json response;            // the object as it was answered
    std::vector<Turn> turns;  // of the whole conversation, this answer's own last
    std::size_t outputs = 0;  // so many of the last turn's items are the answer
    // Every item before the answer's own, in order.
    Json input_items() const;
    Json all_items() const;
  };

  ResponseStore() : ResponseStore(Limits{}) {}
  explicit ResponseStore(Limits limits)
      : limits_(limits), bytes_(std::make_shared<std::atomic<std::size_t>>(0)) {}

  // Keeps an answer: the turns it builds upon, its own items, and how many of those are output. What was used
  // longest ago leaves when the bytes do not suffice; an answer larger than all of them is not kept.
  void put(const std::string& id, Json response, std::vector<Turn> earlier, Json items, std::size_t outputs,
           std::int64_t now);
  // Null: unknown, deleted, too old or pushed out.
  std::shared_ptr<const Record> find(std::string_view id, std::int64_t now);
  bool erase(std::string_view id, std::int64_t now);
  // The item with that id in any answer that is kept.
  std::optional<Json> find_item(std::string_view id, std::int64_t now);

  std::size_t bytes() const { return *bytes_; }  // of all that lives

 private:
  struct Entry {
    std::string id;
    std::shared_ptr<const Record> record;
    std::int64_t made = 0;
  };
  using Entries = std::list<Entry>;  // the newest use in front

  Turn measured(Json items) const;
  void drop(Entries::iterator entry);
  void drop_old(std::int64_t now);
  Entries::iterator find_entry(std::string_view id, std::int64_t now);

  Limits limits_;
  std::shared_ptr<std::atomic<std::size_t>> bytes_;
  std::mutex mutex_;
  Entries entries_;
  std::unordered_map<std::string, Entries::iterator> by_id_;
};

}  // namespace godwit::serve
