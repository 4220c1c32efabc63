#include "hub/repo_api.h"

#include <set>

#include "base/error.h"
#include "base/json.h"
#include "hub/hub_paths.h"

namespace godwit::hub {
namespace {

[[noreturn]] void bad_answer(const std::string& origin, std::string_view what) {
  fail(ErrorCode::corrupt_file, "hub", "{}: {}", origin, what);
}

std::string string_field(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Names go into messages with their control characters made visible.
std::string shown(const std::string& name) { return dump_json(Json(name)); }

std::uint64_t size_field(const Json& object, const std::string& name, const std::string& origin) {
  const auto found = object.find("size");
  if (found == object.end() || !found->is_number_unsigned()) bad_answer(origin, "no size for " + shown(name));
  return found->get<std::uint64_t>();
}

RepoFile parse_file(const Json& sibling, const std::string& origin) {
  if (!sibling.is_object()) bad_answer(origin, "a sibling is no object");
  RepoFile file;
  file.name = string_field(sibling, "rfilename");
  if (!is_safe_relative_path(file.name)) bad_answer(origin, "refusing the file name " + shown(file.name));
  const auto lfs = sibling.find("lfs");
  if (lfs != sibling.end() && lfs->is_object()) {
    file.kind = HashKind::sha256;
    file.hash = string_field(*lfs, "sha256");
    file.size = size_field(*lfs, file.name, origin);
  } else {
    file.hash = string_field(sibling, "blobId");
    file.size = size_field(sibling, file.name, origin);
  }
  if (!is_hex(file.hash, file.kind == HashKind::sha256 ? 64 : 40))
    bad_answer(origin, "no usable checksum for " + shown(file.name));
  return file;
}

}  // namespace

RepoListing parse_repo_listing(std::string_view body, const std::string& origin) {
  Json json;
  try {
    json = parse_json(body, origin);
  } catch (const Error& e) {
    throw Error(ErrorCode::corrupt_file, "hub", e.what());
  }
  if (!json.is_object()) bad_answer(origin, "the answer is no JSON object");
  RepoListing listing;
  listing.commit = string_field(json, "sha");
  if (!is_hex(listing.commit, 40)) bad_answer(origin, "\"sha\" is not a commit of 40 hexadecimal digits");
  const auto siblings = json.find("siblings");
  if (siblings == json.end() || !siblings->is_array()) bad_answer(origin, "\"siblings\" is missing");
  std::set<std::string> seen;
  for (const auto& sibling : *siblings) {
    listing.files.push_back(parse_file(sibling, origin));
    if (!seen.insert(listing.files.back().name).second)
      bad_answer(origin, shown(listing.files.back().name) + " is listed twice");
  }
  return listing;
}

std::string listing_url(const std::string& endpoint, const std::string& repo, const std::string& revision) {
  return fmt::format("{}/api/models/{}/revision/{}?blobs=true", endpoint, repo, url_escape(revision, false));
}

std::string file_url(const std::string& endpoint, const std::string& repo, const std::string& commit,
                     const std::string& name) {
  return fmt::format("{}/{}/resolve/{}/{}", endpoint, repo, commit, url_escape(name, true));
}

void require_success(const HttpHead& head, const std::string& endpoint, const std::string& repo,
                     const std::string& revision, bool had_token) {
  if (head.status < 400) return;
  const auto code = head.header("x-error-code").value_or("");
  const char* token_hint =
      had_token ? "the token in use does not give access" : "set HF_TOKEN if it is private";
  if (code == "GatedRepo" || head.status == 403)
    fail(ErrorCode::not_found, "hub",
         "{} is gated (status {}): accept its licence at {}/{} and set HF_TOKEN to a token of that account",
         repo, head.status, endpoint, repo);
  if (code == "RevisionNotFound")
    fail(ErrorCode::not_found, "hub", "{} has no revision \"{}\" (status {})", repo, revision, head.status);
  if (code == "EntryNotFound") fail(ErrorCode::not_found, "hub", "{} lost a file while it was read", repo);
  // The hub answers 401 or 404 for what does not exist and for what this caller may not see, alike.
  if (head.status == 401 || head.status == 404)
    fail(ErrorCode::not_found, "hub", "{} (revision {}) does not exist at {}, or {} (status {})", repo,
         revision, endpoint, token_hint, head.status);
  fail(ErrorCode::network, "hub", "{} answered status {} for {}", endpoint, head.status, repo);
}

}  // namespace godwit::hub
