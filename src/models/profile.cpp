#include "models/profile.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace godwit::models {
namespace {

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\n") == std::string::npos; }

class Contract {
 public:
  explicit Contract(const Profile& profile) : profile_(profile) {}

  void check() const {
    if (is_blank(profile_.id)) broken("id", "is blank");
    if (profile_.model_types.empty() || std::ranges::any_of(profile_.model_types, is_blank))
      broken("model_types", "has no entry, or a blank one");
    check_identity();
    check_execution();
    check_fidelity();
    const CapabilitySet missing = missing_of(capabilities_of(profile_.execution), profile_.capabilities);
    if (!missing.empty())
      broken("capabilities", fmt::format("lacks {}, which its execution needs", fmt::join(missing, ", ")));
  }

 private:
  [[noreturn]] void broken(std::string_view field, std::string_view problem) const {
    fail(ErrorCode::invalid_argument, "profiles", "invalid contract: profile '{}': {} {}", profile_.id, field,
         problem);
  }

  void check_identity() const {
    if (profile_.artifact.empty() != !profile_.config)
      broken(profile_.artifact.empty() ? "artifact" : "config",
             "is absent; an exact checkpoint has a name and a fingerprint");
    if (profile_.config && profile_.config->digits.size() != 64)
      broken("config", fmt::format("is '{}', no fingerprint of 64 digits", profile_.config->digits));
  }

  void need_loop(std::string_view graph, Loop loop) const {
    if ((profile_.execution.graph == graph) == (profile_.execution.loop == loop)) return;
    broken("execution.loop",
           fmt::format("is {} for the graph {}; {} belongs to {} alone", name_of(profile_.execution.loop),
                       profile_.execution.graph, name_of(loop), graph));
  }

  void check_execution() const {
    const Execution& execution = profile_.execution;
    if (is_blank(execution.graph)) broken("execution.graph", "is blank");
    need_loop("whisper", Loop::encoder_decoder);
    need_loop("diffusion-gemma", Loop::diffusion);
    if ((execution.specialization == Specialization::artifact) != !profile_.artifact.empty())
      broken("execution.specialization",
             fmt::format("is {}; artifact is for exact checkpoints, and for all of them",
                         name_of(execution.specialization)));
  }

  void check_fidelity() const {
    if (const auto problem = problem_of(profile_.reference)) broken("reference fidelity", *problem);
    const bool is_whisper = profile_.execution.graph == "whisper";
    if (profile_.reference.oracle == Oracle::mlx_whisper && !is_whisper)
      broken("reference fidelity", fmt::format("mlx-whisper knows no graph {}", profile_.execution.graph));
    if (!profile_.native) return;
    if (const auto problem = problem_of(*profile_.native)) broken("native fidelity", *problem);
    if (profile_.native->tier != Tier::l3)
      broken("native fidelity", fmt::format("({}) is not L3", text_of(*profile_.native)));
  }

  const Profile& profile_;
};

}  // namespace

bool Profile::takes(const checkpoint::Config& given) const {
  return std::ranges::find(model_types, given.model_type) != model_types.end() &&
         (!accepts || accepts(given));
}

Specialization specialization_of(const Profile& profile, NumericMode mode) {
  return mode == NumericMode::native ? Specialization::generated : profile.execution.specialization;
}

void check_contract(const Profile& profile) { Contract(profile).check(); }

}  // namespace godwit::models
