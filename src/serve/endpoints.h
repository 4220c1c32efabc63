// The endpoints, one function each; routes.cpp says where they live. Invalid requests throw Error.
#pragma once

#include "serve/context.h"
#include "serve/http.h"

namespace godwit::serve {

Response chat_completions(const Request& request, Context& context);
Response completions(const Request& request, Context& context);
Response messages(const Request& request, Context& context);              // Anthropic's
Response count_message_tokens(const Request& request, Context& context);  // Anthropic's
Response tokenize(const Request& request, Context& context);
Response detokenize(const Request& request, Context& context);
Response apply_template(const Request& request, Context& context);     // the prompt of a chat
Response native_completion(const Request& request, Context& context);  // llama.cpp's
Response infill(const Request& request, Context& context);             // llama.cpp's
Response rerank(const Request& request, Context& context);             // 501
Response props(const Request& request, Context& context);              // llama.cpp's
Response slots(const Request& request, Context& context);              // llama.cpp's: the rows that run
Response version(const Request& request, Context& context);
Response embeddings(const Request& request, Context& context);
Response ollama_embed(const Request& request, Context& context);
Response ollama_embeddings(const Request& request, Context& context);
Response ollama_chat(const Request& request, Context& context);
Response ollama_generate(const Request& request, Context& context);
Response ollama_tags(const Request& request, Context& context);       // the models
Response ollama_show(const Request& request, Context& context);       // one of them
Response ollama_running(const Request& request, Context& context);    // those that are loaded
Response ollama_version(const Request& request, Context& context);
Response ollama_unserved(const Request& request, Context& context);   // 501: models do not come and go by its API
Response create_response(const Request& request, Context& context);
Response show_response(const Request& request, Context& context);    // itself, or below it its input_items
Response delete_response(const Request& request, Context& context);
Response change_response(const Request& request, Context& context);  // below it: cancel
Response count_input_tokens(const Request& request, Context& context);
Response list_models(const Request& request, Context& context);
Response show_model(const Request& request, Context& context);
Response web_index(const Request& request, Context& context);  // the page for browsers, a line for programs
Response web_asset(const Request& request, Context& context);
Response health(const Request& request, Context& context);     // llama.cpp's: 503 while loading, draining or stuck
Response liveness(const Request& request, Context& context);   // 200 as long as the server answers and its engines move
Response readiness(const Request& request, Context& context);  // 503 while loading or draining
Response metrics(const Request& request, Context& context);    // for Prometheus
Response stats(const Request& request, Context& context);      // the same for people and pages
Response load_model(const Request& request, Context& context);    // {"model"}; answers when it is loaded
Response unload_model(const Request& request, Context& context);  // {"model"}; once nobody uses it
Response flush_cache(const Request& request, Context& context);  // {"model", "disk"}: forgets computed prompts
Response drain(const Request& request, Context& context);      // 202: the server ends as on SIGTERM

}  // namespace godwit::serve
