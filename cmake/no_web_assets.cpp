// Stands in for what web/build.mjs makes in a build that has no Node.js.
#include "serve/web_assets.h"

namespace godwit::serve {

std::span<const WebAsset> web_assets() { return {}; }

}  // namespace godwit::serve
