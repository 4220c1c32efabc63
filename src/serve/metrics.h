// Numbers that are counted while the server works, and the text form in which Prometheus reads them:
// exposition format 0.0.4. Counting is an atomic addition; a reader takes no lock that a writer holds for
// longer than a look-up.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace godwit::serve {

class Counter {
 public:
  void add(std::uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds);  // upper bounds, ascending, without +Inf
  void observe(double value);

  struct Reading {
    std::vector<std::int64_t> counts;  // values of each bucket, the last one those past all bounds
    double sum = 0;
  };
  // Consistent in itself: the count is the sum of the buckets that were read.
  Reading read() const;
  const std::vector<double>& bounds() const { return bounds_; }

 private:
  std::vector<double> bounds_;
  std::vector<std::atomic<std::uint64_t>> buckets_;
  std::atomic<double> sum_ = 0;
};

// One metric for each combination of label values; they appear on first use and stay. Few values only:
// models, routes, codes; never ids.
template <typename Metric, typename... Arguments>
class Family {
 public:
  Family(std::string_view name, std::string_view help, std::vector<std::string> labels,
         Arguments... arguments)
      : name_(name), help_(help), labels_(std::move(labels)), arguments_(arguments...) {}

  Metric& with(const std::vector<std::string>& values) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = metrics_.find(values); found != metrics_.end()) return found->second;
    }
    const std::unique_lock lock(mutex_);
    return std::apply(
        [&](const auto&... rest) -> Metric& { return metrics_.try_emplace(values, rest...).first->second; },
        arguments_);
  }

  template <typename Visit>
  void each(Visit&& visit) const {
    const std::shared_lock lock(mutex_);
    for (const auto& [values, metric] : metrics_) visit(values, metric);
  }

  std::string_view name() const { return name_; }
  std::string_view help() const { return help_; }
  const std::vector<std::string>& labels() const { return labels_; }

 private:
  std::string name_, help_;
  std::vector<std::string> labels_;
  std::tuple<Arguments...> arguments_;
  mutable std::shared_mutex mutex_;  // guards the map, not what is in it
  std::map<std::vector<std::string>, Metric> metrics_;
};

using CounterFamily = Family<Counter>;
using HistogramFamily = Family<Histogram, std::span<const double>>;  // the bounds must outlive it

// Writes families one after another.
class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  // `type`: counter, gauge or histogram. The samples of a family follow its head.
  void head(std::string_view name, std::string_view type, std::string_view help);
  void sample(std::string_view name, const Labels& labels, double value);
  // The samples of one histogram: how many values each bucket holds, the last one those past all bounds.
  void histogram(std::string_view name, const Labels& labels, std::span<const double> bounds,
                 std::span<const std::int64_t> counts, double sum);
  void add(const CounterFamily& family);
  void add(const HistogramFamily& family);
  void gauge(std::string_view name, std::string_view help, double value);

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace godwit::serve
