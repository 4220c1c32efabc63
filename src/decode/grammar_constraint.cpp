#include "decode/grammar_constraint.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <vector>

namespace godwit::decode {
namespace {

// Shared with the worker, which may still be at it when the answer is dropped. While a mask is being made the
// matcher is the worker's.
class Masks {
 public:
  explicit Masks(const std::shared_ptr<const text::CompiledGrammar>& grammar)
      : matcher_(grammar), words_(grammar->vocabulary().mask_words()) {}

  void begin() {
    const std::lock_guard lock(mutex_);
    is_ready_ = false;
  }

  void make() noexcept {
    std::exception_ptr error;
    try {
      matcher_.mask(words_);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    error_ = error;
    is_ready_ = true;
    ready_.notify_all();
  }

  std::span<const std::uint32_t> wait() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return is_ready_; });
    if (error_) std::rethrow_exception(error_);
    return words_;
  }

  text::GrammarMatcher& matcher() { return matcher_; }

 private:
  text::GrammarMatcher matcher_;
  std::vector<std::uint32_t> words_;
  std::mutex mutex_;
  std::condition_variable ready_;
  bool is_ready_ = true;
  std::exception_ptr error_;
};

class GrammarFilter final : public TokenFilter {
 public:
  GrammarFilter(const std::shared_ptr<const text::CompiledGrammar>& grammar,
                std::shared_ptr<MaskWorker> worker, std::span<const int> answer)
      : masks_(std::make_shared<Masks>(grammar)), worker_(std::move(worker)) {
    for (const int id : answer) masks_->matcher().accept(id);
    prepare();
  }

  std::span<const std::uint32_t> mask() override { return masks_->wait(); }

  void accept(int id) override {
    masks_->wait();
    masks_->matcher().accept(id);
    prepare();
  }

  bool is_over() override { return is_over_; }

 private:
  void prepare() {
    is_over_ = masks_->matcher().is_stopped();
    masks_->begin();
    worker_->post([masks = masks_] { masks->make(); });
  }

  std::shared_ptr<Masks> masks_;
  std::shared_ptr<MaskWorker> worker_;
  bool is_over_ = false;
};

}  // namespace

std::unique_ptr<TokenFilter> GrammarConstraint::start(std::span<const int> answer) const {
  return std::make_unique<GrammarFilter>(grammar_, worker_, answer);
}

}  // namespace godwit::decode
