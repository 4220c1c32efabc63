#include "serve/encoder_model.h"

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/sha256.h"
#include "models/embedding_model.h"
#include "serve/matryoshka.h"

namespace godwit::serve {
namespace {

using Task = std::packaged_task<std::vector<float>(const models::EmbeddingModel&)>;

// The encoder's thread.
class Worker {
 public:
  Worker(const models::ModelOptions& options, const Log& log) {
    std::promise<void> ready;
    std::future<void> opened = ready.get_future();
    thread_ = std::thread([this, options, log, ready = std::move(ready)]() mutable { run(options, log, ready); });
    try {
      opened.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::future<std::vector<float>> add(Task task) {
    std::future<std::vector<float>> made = task.get_future();
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
    return made;
  }
  const models::EmbeddingModel& model() const { return *model_; }

 private:
  void run(const models::ModelOptions& options, const Log& log, std::promise<void>& ready) {
    std::optional<models::EmbeddingModel> opened;
    try {
      opened.emplace(models::EmbeddingModel::open(options, log));
    } catch (...) {
      return ready.set_exception(std::current_exception());
    }
    model_ = &*opened;
    ready.set_value();
    while (auto task = take()) (*task)(*opened);
  }

  std::optional<Task> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_over_ || !tasks_.empty(); });
    if (is_over_) return std::nullopt;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  const models::EmbeddingModel* model_ = nullptr;  // lives on the thread's stack from ready to the end
  std::mutex mutex_;                               // guards tasks_ and is_over_
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool is_over_ = false;
  std::thread thread_;
};

class EncoderEmbedder final : public Embedder {
 public:
  EncoderEmbedder(Worker& worker, bool takes_token_ids) : worker_(worker), takes_token_ids_(takes_token_ids) {}

  int dimensions() const override { return worker_.model().dimensions(); }
  int max_tokens() const override { return worker_.model().max_tokens(); }
  bool allows_dimensions(int count) const override {
    return count == dimensions() || is_matryoshka(worker_.model().config().raw, count, dimensions());
  }
  bool is_normalized() const override { return worker_.model().pooling().normalize; }
  bool takes_token_ids() const override { return takes_token_ids_; }
  std::vector<int> encode(std::string_view text) const override { return worker_.model().encode(text); }

  // One text at a time, so that the texts of several requests take turns and nobody waits for a client that left.
  std::vector<std::vector<float>> embed(const std::vector<std::vector<int>>& texts,
                                        const std::function<void()>& waiting) override {
    constexpr auto kTick = std::chrono::milliseconds(100);
    std::vector<std::vector<float>> vectors;
    for (const std::vector<int>& tokens : texts) {
      waiting();
      auto made = worker_.add(Task([tokens](const models::EmbeddingModel& model) { return model.embed(tokens); }));
      while (made.wait_for(kTick) != std::future_status::ready) waiting();
      try {
        vectors.push_back(made.get());
      } catch (const std::future_error&) {
        fail(ErrorCode::cancelled, "embed", "the encoder is shutting down");
      }
    }
    return vectors;
  }

 private:
  Worker& worker_;
  bool takes_token_ids_;
};

class NoGenerator final : public Generator {
 public:
  explicit NoGenerator(std::string id) : id_(std::move(id)) {}
  std::unique_ptr<TokenSource> submit(decode::GenerationRequest) override { refuse(); }
  std::vector<float> logits(const std::vector<int>&) override { refuse(); }

 private:
  [[noreturn]] void refuse() const {
    fail(ErrorCode::unsupported, "serve", "{}: the model embeds texts and writes none", id_);
  }
  std::string id_;
};

ServedModel describe(const models::EmbeddingModel& model, const models::ModelOptions& options,
                     std::vector<std::string> aliases, std::int64_t created) {
  if (const auto slash = options.id.rfind('/'); slash != std::string::npos)
    aliases.push_back(options.id.substr(slash + 1));
  ServedModel served;
  served.id = options.id;
  served.aliases = std::move(aliases);
  served.created = created;
  served.fingerprint = "fp_" + sha256_of(options.id + "\n" + dump_json(model.config().raw)).substr(0, 12);
  served.settings = fmt::format("embeddings of {} numbers", model.dimensions());
  served.architecture = model.config().source_model_type;
  served.context_length = model.max_tokens();
  served.vocabulary = model.config().vocabulary;
  served.generates = false;
  served.tokenizer = &model.tokenizer();
  served.chat_encoder = std::make_shared<text::ChatEncoder>(model.tokenizer());
  return served;
}

struct EncoderModel {
  EncoderModel(const models::ModelOptions& options, std::vector<std::string> aliases, std::int64_t created,
               bool takes_token_ids, const Log& log)
      : worker(options, log),
        embedder(worker, takes_token_ids),
        generator(options.id),
        model(describe(worker.model(), options, std::move(aliases), created)),
        face{model, generator, &embedder} {}

  Worker worker;
  EncoderEmbedder embedder;
  NoGenerator generator;
  ServedModel model;
  LoadedModel face;
};

}  // namespace

std::shared_ptr<const LoadedModel> open_encoder_model(const models::ModelOptions& options,
                                                      std::vector<std::string> aliases, std::int64_t created,
                                                      bool takes_token_ids, const Log& log) {
  const auto opened = std::make_shared<EncoderModel>(options, std::move(aliases), created, takes_token_ids, log);
  return {opened, &opened->face};
}

}  // namespace godwit::serve
