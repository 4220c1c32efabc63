// A `reference` layout as JSON, for records that outlive the process. Private to cache.
#pragma once

#include "base/json.h"
#include "cache/reference_layout.h"

namespace godwit::cache {

Json layout_json(const ReferenceLayout& layout);
// Error{corrupt_file} for anything that is no layout of `slots` layers.
ReferenceLayout layout_from_json(const Json& json, std::size_t slots);

std::string dtype_name(mx::Dtype dtype);
mx::Dtype dtype_named(const Json& name);  // Error{corrupt_file} for a name that dtype_name() never gives

}  // namespace godwit::cache
