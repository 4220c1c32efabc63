#include "cli/profile_view.h"

namespace godwit::cli {
namespace {

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json json_of(const models::Fidelity& fidelity) {
  return {{"tier", name_of(fidelity.tier)},
          {"oracle", name_of(fidelity.oracle)},
          {"claim", name_of(fidelity.claim)},
          {"figures", or_null(fidelity.figures)}};
}

Json native_json(const models::Profile& profile) {
  Json json = json_of(*profile.native);
  json["specialization"] = name_of(specialization_of(profile, NumericMode::native));
  return json;
}

}  // namespace

std::vector<std::string> profile_titles() { return {"PROFILE", "REFERENCE", "NATIVE", "CONFIG"}; }

std::vector<std::string> profile_cells(const models::ResolvedProfile& resolved) {
  const models::Profile& profile = *resolved.profile;
  return {profile.id, text_of(profile.reference), profile.native ? text_of(*profile.native) : "-",
          std::string(resolved.config.shown())};
}

Json json_of(const models::ResolvedProfile& resolved) {
  const models::Profile& profile = *resolved.profile;
  const models::Execution& execution = profile.execution;
  return {{"id", profile.id},
          {"artifact", or_null(profile.artifact)},
          {"loader", name_of(execution.loader)},
          {"graph", execution.graph},
          {"loop", name_of(execution.loop)},
          {"specialization", name_of(execution.specialization)},
          {"implementation", or_null(execution.implementation)},
          {"capabilities", profile.capabilities},
          {"config_fingerprint", resolved.config.digits},
          {"reference", json_of(profile.reference)},
          {"native", profile.native ? native_json(profile) : Json(nullptr)}};
}

}  // namespace godwit::cli
