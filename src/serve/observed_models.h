// The directory of models as one request sees it: what it opens and generates is noted in the request's
// record, and what is counted per token goes to the metrics. So no endpoint counts anything itself.
#pragma once

#include <functional>
#include <memory>

#include "serve/model_directory.h"
#include "serve/request_record.h"
#include "serve/server_metrics.h"

namespace godwit::serve {

class ObservedModels final : public ModelDirectory {
 public:
  // All must outlive the directory and what it opens. Prompts that are still queued when `draining` is set
  // are refused.
  ObservedModels(ModelDirectory& models, RequestRecord& record, ServerMetrics& metrics,
                 std::function<bool()> draining)
      : models_(models), record_(record), metrics_(metrics), draining_(std::move(draining)) {}

  std::shared_ptr<const LoadedModel> open(std::string_view name,
                                          const std::function<void()>& waiting) override;
  std::vector<ModelEntry> list() const override { return models_.list(); }
  bool unload(std::string_view name) override { return models_.unload(name); }

 private:
  ModelDirectory& models_;
  RequestRecord& record_;
  ServerMetrics& metrics_;
  std::function<bool()> draining_;
};

}  // namespace godwit::serve
