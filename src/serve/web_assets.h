// The files of the web page, as web/build.mjs made them. A program built without Node.js has none.
#pragma once

#include <span>
#include <string_view>

namespace godwit::serve {

struct WebAsset {
  std::string_view name;  // index.html, assets/page-HASH.js, …
  std::string_view type;  // media type
  std::string_view tag;   // of its content, as ETag has it: with quotes
  std::string_view bytes;
};

std::span<const WebAsset> web_assets();

}  // namespace godwit::serve
