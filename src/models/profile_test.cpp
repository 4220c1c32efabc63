#include "models/profile.h"

#include <set>

#include "models/profile_test_support.h"

namespace godwit::models {
namespace {

// The message of the broken contract names the profile and the field.
void expect_broken(const Profile& profile, const std::string& field) {
  const std::string message = message_of(ErrorCode::invalid_argument, [&] { check_contract(profile); });
  EXPECT_TRUE(names(message, {"invalid contract", "'" + profile.id + "'", field})) << field;
}

TEST(Profile, AWholeContractIsAccepted) {
  EXPECT_NO_THROW(check_contract(profile_of("plain")));
  EXPECT_NO_THROW(check_contract(exact_profile("exact", "hf:a/b@c", config_of())));
}

TEST(Profile, ABlankIdGraphOrTypeIsNamed) {
  expect_broken(profile_of(""), "id");
  expect_broken(profile_of("  "), "id");
  Profile profile = profile_of("p");
  profile.model_types = {};
  expect_broken(profile, "model_types");
  profile.model_types = {"llama", ""};
  expect_broken(profile, "model_types");
  profile = profile_of("p");
  profile.execution.graph = " ";
  expect_broken(profile, "execution.graph");
}

TEST(Profile, ArtifactAndFingerprintComeTogether) {
  Profile profile = exact_profile("p", "hf:a/b@c", config_of());
  profile.config.reset();
  expect_broken(profile, "config");
  profile = exact_profile("p", "", config_of());
  expect_broken(profile, "artifact");
  profile = exact_profile("p", "hf:a/b@c", config_of());
  profile.config->digits = "cf274178";
  expect_broken(profile, "config");
}

TEST(Profile, AnExecutionWhosePartsContradictEachOtherIsRefused) {
  Profile profile = profile_of("p", "whisper");
  expect_broken(profile, "execution.loop");
  profile.execution.loop = Loop::encoder_decoder;
  profile.capabilities = capabilities_of(profile.execution);
  EXPECT_NO_THROW(check_contract(profile));
  profile = profile_of("p");
  profile.execution.loop = Loop::encoder_decoder;
  expect_broken(profile, "execution.loop");
  profile.execution.loop = Loop::diffusion;
  expect_broken(profile, "execution.loop");
  profile = profile_of("p");
  profile.execution.specialization = Specialization::artifact;
  expect_broken(profile, "execution.specialization");
  profile = exact_profile("p", "hf:a/b@c", config_of());
  profile.execution.specialization = Specialization::generic;
  expect_broken(profile, "execution.specialization");
}

TEST(Profile, EveryCapabilityOfTheExecutionMustBeDeclared) {
  Profile profile = profile_of("p");
  profile.execution.specialization = Specialization::generated;
  const CapabilitySet needed = capabilities_of(profile.execution);
  EXPECT_EQ(needed, CapabilitySet({"autoregressive", "generated-graph", "llama-graph", "safetensors"}));
  for (const std::string& left_out : needed) {
    profile.capabilities = needed;
    profile.capabilities.erase(left_out);
    expect_broken(profile, "capabilities");
    expect_broken(profile, left_out);
  }
  profile.capabilities = needed;
  profile.capabilities.insert("recurrent-state");  // more than the least is fine
  EXPECT_NO_THROW(check_contract(profile));
}

// All 3 * 6 * 3 tuples against the list of those that exist.
TEST(Fidelity, OnlyTheListedTuplesAreLegal) {
  using enum Oracle;
  const std::set<std::tuple<Tier, Oracle, Claim>> legal = {
      {Tier::l1, mlx_lm, Claim::bit_exact},      {Tier::l1, mlx_vlm, Claim::bit_exact},
      {Tier::l1, mlx_whisper, Claim::bit_exact}, {Tier::l2, mlx_optiq, Claim::bit_exact},
      {Tier::l3, mlx_lm, Claim::bounded},        {Tier::l3, mlx_vlm, Claim::bounded},
      {Tier::l3, transformers, Claim::bounded},  {Tier::l3, none, Claim::measured}};
  int accepted = 0;
  for (const Tier tier : {Tier::l1, Tier::l2, Tier::l3})
    for (const Oracle oracle : {none, mlx_lm, mlx_whisper, mlx_vlm, mlx_optiq, transformers})
      for (const Claim claim : {Claim::bit_exact, Claim::bounded, Claim::measured}) {
        const Fidelity fidelity{tier, oracle, claim, claim == Claim::bit_exact ? "" : "KL 0.001"};
        const bool is_fine = !problem_of(fidelity);
        EXPECT_EQ(is_fine, legal.contains({tier, oracle, claim})) << text_of(fidelity);
        accepted += is_fine;
      }
  EXPECT_EQ(accepted, 8);
  EXPECT_TRUE(problem_of({Tier::l3, none, Claim::measured, ""}).has_value()) << "without figures";
}

TEST(Fidelity, AProfileWithAnIllegalPromiseIsNamed) {
  Profile profile = profile_of("p");
  profile.reference = {Tier::l1, Oracle::none, Claim::measured, "x"};
  expect_broken(profile, "reference fidelity");
  profile.reference = {Tier::l1, Oracle::mlx_whisper, Claim::bit_exact, ""};
  expect_broken(profile, "mlx-whisper");  // of the whisper graph alone
  profile = profile_of("p");
  profile.native = Fidelity{};  // native arithmetic has nobody's bits
  expect_broken(profile, "native fidelity");
  profile.native = Fidelity{Tier::l3, Oracle::none, Claim::measured, ""};
  expect_broken(profile, "native fidelity");
  profile.native->figures = "KL 0.001";
  EXPECT_NO_THROW(check_contract(profile));
}

}  // namespace
}  // namespace godwit::models
