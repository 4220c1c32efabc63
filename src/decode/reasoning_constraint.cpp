#include "decode/reasoning_constraint.h"

namespace godwit::decode {
namespace {

bool has_bit(std::span<const std::uint32_t> words, int id) {
  const std::size_t word = static_cast<std::size_t>(id) / 32;
  return word < words.size() && (words[word] >> (id % 32) & 1);
}

void set_bit(std::vector<std::uint32_t>& words, int id) {
  words[static_cast<std::size_t>(id) / 32] |= std::uint32_t{1} << (id % 32);
}

class ReasoningFilter final : public TokenFilter {
 public:
  ReasoningFilter(std::shared_ptr<const ReasoningMarkers> markers, ReasoningStart start, int budget,
                  std::shared_ptr<const TokenConstraint> then)
      : markers_(std::move(markers)), budget_(budget), then_(std::move(then)) {
    if (start == ReasoningStart::open) {
      begin_reasoning();
    } else {
      stage_ = Stage::first;
      if (then_) rest_ = then_->start();
    }
  }

  std::span<const std::uint32_t> mask() override {
    switch (stage_) {
      case Stage::first:
        return first_mask();
      case Stage::opening:
        return then_ ? only(markers_->open_ids()[written_]) : std::span<const std::uint32_t>();
      case Stage::reasoning:
        return reasoning_mask();
      case Stage::closing:
        return only(markers_->close_ids()[written_]);
      case Stage::behind:
        break;
    }
    return rest_ ? rest_->mask() : std::span<const std::uint32_t>();
  }

  void accept(int id) override {
    if (stage_ == Stage::first) return accept_first(id);
    if (stage_ == Stage::opening) return accept_opening(id);
    if (stage_ == Stage::behind) {
      if (rest_) rest_->accept(id);
      return;
    }
    if (stage_ == Stage::closing) ++written_;
    accept_reasoning(id);
  }

  bool is_over() override {
    return (stage_ == Stage::behind || stage_ == Stage::first) && rest_ && rest_->is_over();
  }

 private:
  enum class Stage { first, opening, reasoning, closing, behind };

  void begin_reasoning() {
    stage_ = Stage::reasoning;
    if (budget_ == 0) begin_closing();
  }

  void begin_closing() {
    stage_ = Stage::closing;
    written_ = 0;
  }

  void begin_rest() {
    stage_ = Stage::behind;
    if (then_ && !rest_) rest_ = then_->start();
  }

  // A marker that the constraint itself takes is left to it.
  bool may_open() {
    const std::vector<int>& open = markers_->open_ids();
    return !open.empty() && !(rest_ && has_bit(rest_->mask(), open[0]));
  }

  std::span<const std::uint32_t> first_mask() {
    if (!rest_) return {};
    const std::span<const std::uint32_t> allowed = rest_->mask();
    if (!may_open() || allowed.empty()) return allowed;
    words_.assign(allowed.begin(), allowed.end());
    set_bit(words_, markers_->open_ids()[0]);
    return words_;
  }

  void accept_first(int id) {
    if (!may_open() || id != markers_->open_ids()[0]) {
      begin_rest();
      if (rest_) rest_->accept(id);
      return;
    }
    stage_ = Stage::opening;
    accept_opening(id);
  }

  // Without a constraint nothing makes the model go on with a marker that it has begun.
  void accept_opening(int id) {
    if (id != markers_->open_ids()[written_]) return begin_rest();
    if (++written_ < markers_->open_ids().size()) return;
    rest_ = nullptr;
    begin_reasoning();
  }

  std::span<const std::uint32_t> reasoning_mask() {
    if (!then_) return {};
    words_ = markers_->free_mask(begun_);
    return words_;
  }

  void accept_reasoning(int id) {
    for (const char byte : markers_->text_of(id)) {
      begun_ = markers_->next(begun_, byte);
      if (begun_ == markers_->close_size()) return begin_rest();
    }
    ++made_;
    if (stage_ == Stage::reasoning && budget_ >= 0 && made_ >= budget_) return begin_closing();
    // Written out without being found: tokens that do not spell the marker. Its end counts all the same.
    if (stage_ == Stage::closing && written_ == markers_->close_ids().size()) begin_rest();
  }

  std::span<const std::uint32_t> only(int id) {
    words_.assign(markers_->mask_words(), 0);
    set_bit(words_, id);
    return words_;
  }

  std::shared_ptr<const ReasoningMarkers> markers_;
  int budget_;
  std::shared_ptr<const TokenConstraint> then_;
  std::unique_ptr<TokenFilter> rest_;
  Stage stage_ = Stage::reasoning;
  std::size_t written_ = 0;  // tokens of the marker that is being written
  std::size_t begun_ = 0;    // bytes at the end of the text that could begin the closing marker
  int made_ = 0;             // tokens of reasoning
  std::vector<std::uint32_t> words_;
};

}  // namespace

std::unique_ptr<TokenFilter> ReasoningConstraint::start(std::span<const int> answer) const {
  auto filter = std::make_unique<ReasoningFilter>(markers_, start_, budget_, then_);
  for (const int id : answer) filter->accept(id);
  return filter;
}

}  // namespace godwit::decode
