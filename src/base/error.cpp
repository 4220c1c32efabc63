#include "base/error.h"

namespace godwit::detail {

void check_failed(const char* condition, const char* file, int line, std::string_view message) {
  const std::string_view path(file);
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  throw Error(ErrorCode::internal, "check",
              fmt::format("{}:{}: {} does not hold{}{}", name, line, condition, message.empty() ? "" : ": ",
                          message));
}

}  // namespace godwit::detail
