// An MLX graph that was built once over placeholders and is built again over other arrays, without the code that made
// it: the same primitives in the same order of dependence, hence the same bits.
//
// Not mx::compile: on CPU that needs a C++ compiler at run time, loads what it made from a shared folder and rounds by
// that compiler's contraction rules, and where shapes change it has to infer the shape of every node, which static
// slices and splits refuse. Here only nodes that see a changed shape are inferred.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mx.h"

namespace godwit::ops {

// An array without a value, to build a graph over.
mx::array placeholder(const mx::Shape& shape, mx::Dtype dtype);

// A call in the middle of the graph that is made anew at each replay: it was given `operands` and stands for `result`,
// a placeholder. Calls come in their order, whatever their operands say.
struct GraphCall {
  std::vector<mx::array> operands;
  mx::array result;
};

// What was built.
struct BuiltGraph {
  // Leaves that a replay gives anew: placeholders, or arrays with a value, which then are no constants.
  std::vector<mx::array> inputs;
  // For inputs that change their shape: one that they may have later, of the same rank. Empty: none changes.
  std::vector<std::optional<mx::Shape>> later = {};
  std::vector<mx::array> outputs;
  std::vector<GraphCall> calls = {};
};

class RecordedGraph {
 public:
  // Nodes that depend on no input are constants: those of at most kFolded bytes are evaluated now and enter as values,
  // also where nothing has evaluated them before; larger ones stay nodes. Equal nodes become one. Throws
  // Error{unsupported} where a shape that changes meets a node that cannot follow it, Error{internal} for a leaf without
  // a value that is no input.
  explicit RecordedGraph(const BuiltGraph& built);

  static constexpr std::size_t kFolded = 1 << 20;

  // The result of call `index`, of the shape and dtype that it had.
  using Caller = std::function<mx::array(std::size_t index, const std::vector<mx::array>& operands)>;
  // The outputs over `inputs`, lazily. Inputs have the dtypes and, but those that change, the shapes of those it was
  // built over: Error{internal}.
  std::vector<mx::array> replay(std::span<const mx::array> inputs, const Caller& caller) const;

  std::size_t nodes() const { return entries_.size() - calls_; }
  std::size_t calls() const { return calls_; }
  std::size_t constants() const { return constants_.size(); }

 private:
  friend class GraphRecorder;

  // Values are numbered: inputs, then constants and results as they come.
  struct Entry {
    std::shared_ptr<mx::Primitive> primitive = nullptr;  // null: call `call`
    std::size_t call = 0;
    std::vector<std::size_t> operands = {}, results = {};
    std::vector<mx::Shape> shapes = {};  // of the results when it was built
    std::vector<mx::Dtype> dtypes = {};
    bool follows = false;  // sees shapes that change
  };
  struct Input {
    mx::Shape shape;
    mx::Dtype dtype;
    bool changes;
  };
  struct Constant {
    std::size_t value;
    mx::array array;
  };
  std::vector<mx::array> results_of(const Entry& entry, std::vector<mx::array> operands, const Caller& caller) const;
  void find_followers(const BuiltGraph& built);

  void check_inputs(std::span<const mx::array> inputs) const;

  std::vector<Input> inputs_;
  std::size_t values_ = 0, calls_ = 0;
  std::vector<Constant> constants_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> outputs_;
};

}  // namespace godwit::ops
