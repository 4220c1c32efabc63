// One question to the hub: which commit is a revision, and which files does it hold.
//
//   GET {endpoint}/api/models/ORG/NAME/revision/REVISION?blobs=true
//   -> {"sha": commit, "siblings": [{"rfilename", "size", "blobId", "lfs": {"sha256", "size"}}]}
//
// Everything in the answer is untrusted: names that would leave their folder and hashes that are no hashes
// are errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hub/content_hash.h"
#include "hub/http_client.h"

namespace godwit::hub {

struct RepoFile {
  std::string name;  // relative path inside the repository
  std::uint64_t size = 0;
  HashKind kind = HashKind::git_sha1;
  std::string hash;  // lower-case hexadecimal; names the blob in the cache
};

struct RepoListing {
  std::string commit;  // 40 hexadecimal digits
  std::vector<RepoFile> files;
};

// Throws Error{corrupt_file} naming the offending field; `origin` is the URL.
RepoListing parse_repo_listing(std::string_view body, const std::string& origin);

std::string listing_url(const std::string& endpoint, const std::string& repo, const std::string& revision);
std::string file_url(const std::string& endpoint, const std::string& repo, const std::string& commit,
                     const std::string& name);

// Throws the Error that explains a status of 400 or more to a person: a token is needed, the licence has to
// be accepted first, no such repository or revision, ... Statuses below 400 pass.
void require_success(const HttpHead& head, const std::string& endpoint, const std::string& repo,
                     const std::string& revision, bool had_token);

}  // namespace godwit::hub
