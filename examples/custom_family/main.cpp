// Adds a family to Godwit from outside: a llama whose layers see no positions ("nope"), with its own names
// for the keys of its config. Opens a checkpoint of it and answers greedily.
//
//   custom_family FOLDER TOKENS COUNT        custom_family ./nope 1,2,3 8
#include <array>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "decode/engine.h"
#include "models/catalogue.h"
#include "models/dense.h"
#include "models/model_bundle.h"

namespace {

using namespace godwit;

// How its files spell what the readers look for.
constexpr std::array<checkpoint::Spelling, 2> kKeys = {
    {{"width", "hidden_size"}, {"depth", "num_hidden_layers"}}};
constexpr checkpoint::Dialect kDialect = {.model_type = "nope", .keys = kKeys};

// The graph, as its difference from llama.
models::DenseSpec nope_spec(const checkpoint::Config& config) {
  models::DenseSpec spec = models::llama_spec(config);
  for (models::DenseLayer& layer : spec.layers) layer.rope.reset();
  return spec;
}

const models::Family kNope = models::dense_family<nope_spec>("nope", &kDialect);

std::vector<int> parse_tokens(const std::string& text) {
  std::vector<int> tokens;
  std::istringstream in(text);
  for (std::string token; std::getline(in, token, ',');) tokens.push_back(std::stoi(token));
  return tokens;
}

void answer(const std::string& folder, const std::vector<int>& prompt, int count) {
  models::ModelOptions options;
  options.path = options.id = folder;
  // The built-in registry stays as it is: with() makes another one.
  options.catalogue = std::make_shared<const models::Catalogue>(
      models::Catalogue::of(models::Registry::builtin().with(kNope)));
  decode::Engine engine(options, Log());
  std::cout << "profile: " << engine.model().profile.profile->id << "\n";

  decode::GenerationRequest request;
  request.prompt = prompt;
  request.max_tokens = count;
  request.sampling.temperature = 0;
  decode::Job job = engine.submit(request);
  const char* separator = "tokens: ";
  while (const auto event = job.next()) {
    if (event->id < 0) continue;
    std::cout << separator << event->id;
    separator = ",";
  }
  std::cout << "\n";
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::cerr << "usage: custom_family FOLDER TOKENS COUNT\n";
    return 2;
  }
  try {
    answer(arguments[1], parse_tokens(arguments[2]), std::stoi(arguments[3]));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
