#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace godwit::serve {
namespace {

std::string escaped(std::string_view text, bool is_label) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '"' && is_label)
      out += "\\\"";
    else
      out += c;
  }
  return out;
}

std::string number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (std::isnan(value)) return "NaN";
  const bool is_whole = std::abs(value) < 9e15 && value == std::floor(value);
  return is_whole ? fmt::format("{}", static_cast<std::int64_t>(value)) : fmt::format("{}", value);
}

MetricsText::Labels zip(const std::vector<std::string>& names, const std::vector<std::string>& values) {
  MetricsText::Labels labels;
  for (std::size_t i = 0; i < names.size(); ++i) labels.emplace_back(names[i], values.at(i));
  return labels;
}

}  // namespace

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()), buckets_(bounds.size() + 1) {}

void Histogram::observe(double value) {
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  buckets_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

Histogram::Reading Histogram::read() const {
  Reading reading;
  for (const auto& bucket : buckets_)
    reading.counts.push_back(static_cast<std::int64_t>(bucket.load(std::memory_order_relaxed)));
  reading.sum = sum_.load(std::memory_order_relaxed);
  return reading;
}

void MetricsText::head(std::string_view name, std::string_view type, std::string_view help) {
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(help, false), name, type);
}

void MetricsText::sample(std::string_view name, const Labels& labels, double value) {
  text_ += name;
  std::string inside;
  for (const auto& [label, text] : labels)
    inside += fmt::format("{}{}=\"{}\"", inside.empty() ? "" : ",", label, escaped(text, true));
  if (!inside.empty()) text_ += fmt::format("{{{}}}", inside);
  text_ += fmt::format(" {}\n", number(value));
}

void MetricsText::histogram(std::string_view name, const Labels& labels, std::span<const double> bounds,
                            std::span<const std::int64_t> counts, double sum) {
  std::int64_t up_to = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    Labels with_bound = labels;
    const std::string bound = i < bounds.size() ? number(bounds[i]) : "+Inf";
    with_bound.emplace_back("le", bound);
    sample(fmt::format("{}_bucket", name), with_bound, static_cast<double>(up_to += counts[i]));
  }
  sample(fmt::format("{}_sum", name), labels, sum);
  sample(fmt::format("{}_count", name), labels, static_cast<double>(up_to));
}

void MetricsText::add(const CounterFamily& family) {
  head(family.name(), "counter", family.help());
  family.each([&](const std::vector<std::string>& values, const Counter& counter) {
    sample(family.name(), zip(family.labels(), values), static_cast<double>(counter.value()));
  });
}

void MetricsText::add(const HistogramFamily& family) {
  head(family.name(), "histogram", family.help());
  family.each([&](const std::vector<std::string>& values, const Histogram& each) {
    const Histogram::Reading reading = each.read();
    histogram(family.name(), zip(family.labels(), values), each.bounds(), reading.counts, reading.sum);
  });
}

void MetricsText::gauge(std::string_view name, std::string_view help, double value) {
  head(name, "gauge", help);
  sample(name, {}, value);
}

}  // namespace godwit::serve
