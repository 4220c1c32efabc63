#include "serve/matryoshka.h"

#include <algorithm>
#include <cmath>

namespace godwit::serve {

bool is_matryoshka(const Json& config, int count, int dimensions) {
  if (!config.is_object() || count < 1 || count > dimensions) return false;
  const auto listed = config.find("matryoshka_dimensions");
  if (listed != config.end() && listed->is_array() && !listed->empty())
    return std::ranges::find(*listed, Json(count)) != listed->end();
  return config.value("is_matryoshka", Json(false)) == true;
}

void normalize(std::vector<float>& vector) {
  double sum = 0;
  for (const float value : vector) sum += double{value} * value;
  if (sum <= 0) return;
  for (float& value : vector) value = static_cast<float>(value / std::sqrt(sum));
}

}  // namespace godwit::serve
