// The items of POST /v1/responses: what comes in, and how it becomes the messages of a chat.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace godwit::serve {

inline constexpr std::size_t kMostItems = 100'000;

// The item of an id that an item_reference names; nullopt: there is none.
using FindItem = std::function<std::optional<Json>(std::string_view id)>;

// `input`, a string or a list of items, checked; each comes out with type and id. Throws RequestError naming
// the item.
Json read_items(const Json& input, const std::string& param, const FindItem& find_item);

// Messages in OpenAI's chat form, as read_messages makes them, of checked items. Calls in a row join the
// assistant's message before them; reasoning goes with the message or calls behind it. Throws RequestError
// for the output of a call that none of the items made: the last `own` items are those of `input`.
Json messages_of_items(const Json& items, std::size_t own);

}  // namespace godwit::serve
