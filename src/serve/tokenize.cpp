// POST /tokenize, /detokenize, /apply-template: what a text or a chat is to the model. Two peers' spellings of each, told
// apart by their keys.
#include "serve/chat_request.h"
#include "serve/endpoints.h"
#include "serve/json_fields.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

bool is_utf8(const std::string& bytes) {
  return Json(bytes).dump(-1, ' ', false, Json::error_handler_t::ignore) ==
         Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The bytes that a token stands for: its name, where it is a control token.
std::string piece_of(int id, const text::Tokenizer& tokenizer) {
  std::string bytes = tokenizer.bytes_of(id);
  return bytes.empty() ? tokenizer.token_of(id).value_or("") : bytes;
}

// Half a character is no text: it is a list of bytes.
Json piece_json(int id, const text::Tokenizer& tokenizer) {
  const std::string piece = piece_of(id, tokenizer);
  if (is_utf8(piece)) return piece;
  Json bytes = Json::array();
  for (const char byte : piece) bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

// llama.cpp: {content, add_special, parse_special, with_pieces} -> {tokens}.
Json tokens_of_content(const JsonFields& in, const text::Tokenizer& tokenizer) {
  const auto content = in.string("content");
  const std::vector<int> ids =
      tokenizer.encode(content.value_or(""), {.add_special_tokens = in.boolean("add_special").value_or(false),
                                              .parse_special_tokens = in.boolean("parse_special").value_or(true)});
  if (!in.boolean("with_pieces").value_or(false)) return {{"tokens", ids}};
  Json tokens = Json::array();
  for (const int id : ids) tokens.push_back({{"id", id}, {"piece", piece_json(id, tokenizer)}});
  return {{"tokens", std::move(tokens)}};
}

// vLLM: {prompt | messages, …} -> {count, max_model_len, tokens, token_strs}.
Json tokens_of_prompt(const Json& body, const ServedModel& model) {
  const JsonFields in(body);
  const text::Tokenizer& tokenizer = model.need_tokenizer();
  std::vector<int> ids;
  if (in.find("messages")) {
    ids = render_turn(parse_chat_request(body, model).turn, model);
  } else {
    const auto prompt = in.string("prompt");
    if (!prompt) bad_field("content", "is required (or prompt, or messages)");
    ids = tokenizer.encode(*prompt, {.add_special_tokens = in.boolean("add_special_tokens").value_or(true)});
  }
  Json strings = nullptr;
  if (in.boolean("return_token_strs").value_or(false)) {
    strings = Json::array();
    for (const int id : ids) strings.push_back(tokenizer.token_of(id).value_or(""));
  }
  return {{"count", ids.size()},
          {"max_model_len", model.context_length},
          {"tokens", ids},
          {"token_strs", std::move(strings)}};
}

std::vector<int> read_tokens(const JsonFields& in, const ServedModel& model) {
  const Json* given = in.array("tokens");
  if (!given) bad_field(in.path_of("tokens"), "is required");
  std::vector<int> ids;
  for (const Json& value : *given) {
    const auto id = as_integer(value);
    if (!id || *id < 0 || *id >= model.vocabulary)
      bad_field(in.path_of("tokens"), "needs token ids below {}, got {}", model.vocabulary, shown(value));
    ids.push_back(static_cast<int>(*id));
  }
  return ids;
}

}  // namespace

Response tokenize(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  const auto loaded = context.models.open(model_name(body), request.check_alive);
  const JsonFields in(body);
  if (in.find("content")) return Response::json(tokens_of_content(in, loaded->model.need_tokenizer()));
  return Response::json(tokens_of_prompt(body, loaded->model));
}

Response detokenize(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  const auto loaded = context.models.open(model_name(body), request.check_alive);
  const std::vector<int> ids = read_tokens(JsonFields(body), loaded->model);
  const std::string text = loaded->model.need_tokenizer().decode(ids, /*skip_special_tokens=*/false);
  return Response::json({{"content", text}, {"prompt", text}});
}

Response apply_template(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  const auto loaded = context.models.open(model_name(body), request.check_alive);
  const std::vector<int> ids = render_turn(parse_chat_request(body, loaded->model).turn, loaded->model);
  return Response::json({{"prompt", loaded->model.need_tokenizer().decode(ids, /*skip_special_tokens=*/false)}});
}

}  // namespace godwit::serve
