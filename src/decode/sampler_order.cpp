#include "decode/sampler_order.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace godwit::decode {
namespace {

using enum SamplerStage;

struct Named {
  std::string_view name;
  SamplerStage stage;
  char letter = 0;
};

constexpr std::array kNames = {Named{"penalties", penalties, 'e'},
                               Named{"dry", dry, 'd'},
                               Named{"top_n_sigma", top_n_sigma, 's'},
                               Named{"top_k", top_k, 'k'},
                               Named{"typ_p", typical, 'y'},
                               Named{"typical_p", typical},
                               Named{"typical", typical},
                               Named{"top_p", top_p, 'p'},
                               Named{"min_p", min_p, 'm'},
                               Named{"xtc", xtc, 'x'},
                               Named{"temperature", temperature, 't'},
                               Named{"temp", temperature}};

std::string_view name_of(SamplerStage stage) { return std::ranges::find(kNames, stage, &Named::stage)->name; }

std::string all_names() {
  std::string names;
  for (const Named& one : kNames)
    if (one.letter != 0) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

bool is_in_front(SamplerStage stage) { return stage == penalties || stage == dry; }

}  // namespace

const SamplerOrder& default_sampler_order() {
  static const SamplerOrder order = {penalties, dry,   top_n_sigma, top_k,      typical,
                                     top_p,     min_p, xtc,         temperature};
  return order;
}

SamplerOrder sampler_preset(std::string_view name) {
  if (name == "llamacpp" || name == "llama.cpp") return default_sampler_order();
  if (name == "vllm") return {penalties, temperature, min_p, top_k, top_p};
  if (name == "mlx-lm") return {penalties, top_p, min_p, xtc, top_k, temperature};
  fail(ErrorCode::invalid_argument, "sampling",
       "no sampler preset is named \"{}\": there are llamacpp, mlx-lm and vllm", name);
}

SamplerOrder sampler_order(std::span<const std::string> names) {
  SamplerOrder order;
  for (const std::string& name : names) {
    std::string spelled = name;
    std::ranges::replace(spelled, '-', '_');
    const auto found = std::ranges::find(kNames, spelled, &Named::name);
    if (found == kNames.end())
      fail(ErrorCode::invalid_argument, "sampling", "no sampler is named \"{}\": there are {}", name,
           all_names());
    order.push_back(found->stage);
  }
  validate(order);
  return order;
}

SamplerOrder sampler_order_of_letters(std::string_view letters) {
  SamplerOrder order;
  for (const char letter : letters) {
    const auto found = std::ranges::find(kNames, letter, &Named::letter);
    if (found == kNames.end() || letter == 0)
      fail(ErrorCode::invalid_argument, "sampling", "no sampler has the letter '{}': there are edskypmxt",
           letter);
    order.push_back(found->stage);
  }
  validate(order);
  return order;
}

void validate(const SamplerOrder& order) {
  bool truncates = false;
  for (auto at = order.begin(); at != order.end(); ++at) {
    if (std::find(order.begin(), at, *at) != at)
      fail(ErrorCode::invalid_argument, "sampling", "the sampler {} comes twice", name_of(*at));
    if (is_in_front(*at) && truncates)
      fail(ErrorCode::invalid_argument, "sampling",
           "the sampler {} must come in front of those that truncate", name_of(*at));
    truncates |= !is_in_front(*at);
  }
}

}  // namespace godwit::decode
