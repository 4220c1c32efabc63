// POST /v1/responses and what belongs to it: reading, listing, deleting and counting.
#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>

#include "serve/dialect.h"
#include "serve/endpoints.h"
#include "serve/json_fields.h"
#include "serve/openai_json.h"
#include "serve/responses_events.h"
#include "serve/responses_request.h"
#include "serve/structured_output.h"
#include "serve/tool_fields.h"

namespace godwit::serve {
namespace {

constexpr std::size_t kMostListed = 100, kUsuallyListed = 20;

Json frame_of(const ResponsesRequest& parsed, const ServedModel& model, std::int64_t now) {
  Json frame{{"id", random_id("resp_")}, {"object", "response"},
             {"created_at", now},        {"completed_at", nullptr},
             {"status", nullptr},        {"background", false},
             {"error", nullptr},         {"incomplete_details", nullptr},
             {"model", model.id},        {"output", Json::array()}};
  frame.update(parsed.echo);
  frame["usage"] = nullptr;
  return frame;
}

// One answer on its way, and what is kept of it.
struct Making {
  ResponsesRequest parsed;
  ChatAnswer answer;
  Json frame;
  Context& context;

  // Runs to the end; `idle` as ChatAnswer::next.
  Json run(ResponseWriter& writer, const std::function<void()>& idle) {
    writer.begin();
    while (const auto delta = answer.next(idle)) writer.add(*delta);
    Json made = writer.finish(context.server.now_unix());
    keep(made, writer.output());
    return made;
  }

  void keep(const Json& made, const Json& output) const {
    if (!parsed.is_stored) return;
    Json items = parsed.items;
    items.insert(items.end(), output.begin(), output.end());
    context.server.responses.put(made["id"], made, parsed.earlier, std::move(items), output.size(), context.server.now_unix());
  }
};

void stream(Making& making, const Request& request, EventSink& sink) {
  const auto send = [&](std::string_view type, const Json& event) { sink.send(type, dump_json(event)); };
  ResponseWriter writer(making.frame, making.answer, send);
  const auto idle = [&] {
    request.check_alive();
    sink.idle();
  };
  try {
    making.run(writer, idle);
  } catch (const std::exception& error) {
    const Failure failure = failure_of(error);
    if (failure.status == 499) throw;  // nobody is left to tell
    making.context.log.warning("{}: stream failed: {}", request.id, failure.message);
    making.keep(writer.fail(failure), writer.output());
  }
}

std::shared_ptr<const ResponseStore::Record> need_record(const std::string& id, Context& context) {
  if (auto record = context.server.responses.find(id, context.server.now_unix())) return record;
  throw RequestError(ErrorCode::not_found, fmt::format("there is no response {}", shown(Json(id))),
                     {.param = "response_id", .code = "response_not_found"});
}

// The path below /responses/: an id, and behind it the name of what is wanted of it.
struct Place {
  std::string id;
  std::string what;
};

Place place_of(const Request& request) {
  const auto slash = request.rest.find('/');
  if (slash == std::string::npos) return {request.rest, ""};
  return {request.rest.substr(0, slash), request.rest.substr(slash + 1)};
}

[[noreturn]] void nothing_there(const Request& request) {
  throw RequestError(ErrorCode::not_found, fmt::format("there is nothing at {}", request.path),
                     {.code = "not_found"});
}

// A field of the query string; "" when it is not there.
std::string query_field(const Request& request, std::string_view name) {
  const std::string_view target = request.target;
  std::size_t at = target.find('?');
  while (at < target.size()) {
    const std::size_t end = std::min(target.find('&', at + 1), target.size());
    const std::string_view field = target.substr(at + 1, end - at - 1);
    if (field.starts_with(name) && field.substr(name.size()).starts_with('='))
      return percent_decode(field.substr(name.size() + 1));
    at = end;
  }
  return "";
}

std::size_t read_count(const std::string& text) {
  if (text.empty()) return kUsuallyListed;
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count == 0 || count > kMostListed)
    bad_field("limit", "must be within 1..{}, got {}", kMostListed, shown(Json(text)));
  return count;
}

// Pages as OpenAI's lists have them: the newest item first unless `order` is asc, behind the item `after`.
Json list_page(std::vector<Json> items, const Request& request) {
  const std::string order = query_field(request, "order"), after = query_field(request, "after");
  if (!order.empty() && order != "asc" && order != "desc")
    bad_field("order", "must be asc or desc, got {}", shown(Json(order)));
  if (order != "asc") std::ranges::reverse(items);
  auto begin = items.begin();
  if (!after.empty()) {
    const auto at = std::ranges::find_if(items, [&](const Json& item) { return item["id"] == after; });
    if (at == items.end()) bad_field("after", "names no item: {}", shown(Json(after)));
    begin = at + 1;
  }
  const auto left = static_cast<std::size_t>(items.end() - begin);
  const std::size_t count = std::min(left, read_count(query_field(request, "limit")));
  Json data = Json::array();
  for (std::size_t i = 0; i < count; ++i) data.push_back(begin[static_cast<std::ptrdiff_t>(i)]);
  const auto id_of = [](const Json& item) { return item["id"]; };
  return {{"object", "list"},
          {"first_id", data.empty() ? Json(nullptr) : id_of(data.front())},
          {"last_id", data.empty() ? Json(nullptr) : id_of(data.back())},
          {"has_more", count < left},
          {"data", std::move(data)}};
}

}  // namespace

Response create_response(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  auto loaded = context.models.open(model_name(body), request.check_alive);
  ResponsesRequest parsed = parse_responses_request(body, loaded->model, context.server.responses, context.server.now_unix());
  note_left_out(parsed.left_out, request, context);
  if (parsed.may_cut) cut_to_context(parsed.turn, loaded->model);
  Json frame = frame_of(parsed, loaded->model, context.server.now_unix());
  const bool is_stream = parsed.stream;
  ChatAnswer answer(std::move(loaded), parsed.turn);
  const std::shared_ptr<Making> making(
      new Making{std::move(parsed), std::move(answer), std::move(frame), context});
  Response response;
  if (is_stream) {
    response =
        Response::event_stream([making, &request](EventSink& sink) { stream(*making, request, sink); });
  } else {
    ResponseWriter writer(making->frame, making->answer, nullptr);
    response = Response::json(making->run(writer, request.check_alive));
  }
  if (const auto& grammar = making->answer.grammar()) add_notes(*grammar, response.headers);
  return response;
}

Response show_response(const Request& request, Context& context) {
  const Place place = place_of(request);
  const auto record = need_record(place.id, context);
  if (place.what == "input_items") {
    const Json items = record->input_items();
    return Response::json(list_page({items.begin(), items.end()}, request));
  }
  if (!place.what.empty()) nothing_there(request);
  if (query_field(request, "stream") == "true") unserved_field("stream", "streaming a finished response");
  return Response::json(record->response);
}

Response delete_response(const Request& request, Context& context) {
  const Place place = place_of(request);
  if (!place.what.empty()) nothing_there(request);
  need_record(place.id, context);
  context.server.responses.erase(place.id, context.server.now_unix());
  return Response::json({{"id", place.id}, {"object", "response"}, {"deleted", true}});
}

Response change_response(const Request& request, Context& context) {
  const Place place = place_of(request);
  if (place.what != "cancel") nothing_there(request);
  need_record(place.id, context);
  throw RequestError(ErrorCode::invalid_argument,
                     "only a response that runs in the background can be cancelled",
                     {.param = "response_id", .code = "invalid_value"});
}

Response count_input_tokens(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  const auto loaded = context.models.open(model_name(body), request.check_alive);
  const ResponsesRequest parsed =
      parse_responses_request(body, loaded->model, context.server.responses, context.server.now_unix());
  return Response::json({{"object", "response.input_tokens"},
                         {"input_tokens", render_turn(parsed.turn, loaded->model).size()}});
}

}  // namespace godwit::serve
