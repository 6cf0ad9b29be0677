// backends/cpu/codegen/: LLVM IR of one kernel for the CPU: lanes become vectors.
//
// Compiles a kernel to a function of LLVM IR, for the host:
//
//   void kernel(buffers …, scalars …, i64 begin, i64 end, ptr scratch, ptr stops)
//
// It runs the workgroups [begin, end) of the grid, in row-major order. `scratch` is memory of
// scratch_bytes, which no other call uses at the same time; `stops` points to two words that while
// loops poll (B27).
//
// A `lanes` loop becomes vectors along one of its dimensions, with loops around them for the
// others; so does a reduction of a workgroup, whose lanes are combined at its end. Inside, a value
// that is the same for all lanes stays a scalar; a value that is linear in the lane, mostly an
// index, stays a scalar with a stride; any other value is a vector. Conditional code is masked.
// Loops that the lanes cannot run together (Varying::together) run one iteration at a time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/cpu/codegen/row_pattern.h"
#include "backends/cpu/codegen/varying.h"
#include "backends/llvm/kernel_emitter.h"
#include "backends/llvm/math.h"

namespace tenon::cpu {

struct MicroTile;
struct TileElements;

/// A kernel's function and the data that a call of it needs.
struct CpuKernelFunction {
  llvm::Function* function = nullptr;
  int64_t scratch_bytes = 0;
};

/// The kernel in the form that the emitter takes: tile statements become loops, except `contract`
/// statements that become tiles of sums in registers.
kernel::Kernel with_native_tiles(const kernel::Kernel& kernel, int64_t vector_bytes);

/// A value in LLVM IR: a vector; or a scalar, which is the value of lane 0 if `stride` is not 0
/// (lane l has scalar + l * stride). For an index, `wide` may be the scalar in 64 bits, for
/// addresses.
struct Lanes {
  llvm::Value* scalar = nullptr;
  llvm::Value* vector = nullptr;
  int64_t stride = 0;
  llvm::Value* wide = nullptr;
  bool same() const { return scalar != nullptr && stride == 0; }
};

class CpuKernelEmitter : private codegen::KernelEmitter<Lanes> {
 public:
  /// `kernel` is the result of with_native_tiles() for a verified kernel that is legal for
  /// host_features(). `vector_bytes`: the size of a vector register.
  CpuKernelEmitter(llvm::Module& module, const kernel::Kernel& kernel, int64_t vector_bytes);

  CpuKernelFunction run(const std::string& name);

 private:
  // --- emitter.cpp: values, operations, blocks, the function
  void make_function(const std::string& name);
  void grid_loop();
  llvm::Type* type_of(ElementType type, bool varying);
  Value* number(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  Value* index(int64_t value);
  Value* steps(llvm::Type* element, int64_t stride);
  Value* vector_of(const Lanes& lanes);
  /// `lanes` as a scalar, or as a vector if the lanes may have different values of `like`.
  Value* as(kernel::ValueId like, const Lanes& lanes);
  Lanes from(kernel::ValueId like, Value* value);
  Lanes form_of(Value* scalar) override { return {scalar, nullptr, 0}; }
  codegen::LlvmValues flatten(const Ids& like, const Many& lanes) override;
  Many unflatten(const Ids& like, const codegen::LlvmValues& values) override;
  bool varies(kernel::ValueId value) const { return width_ > 1 && (*varying_)(value); }
  Many block(kernel::BlockId id) override;
  void operation(const kernel::Node& n) override;
  std::optional<Lanes> linear(const kernel::Node& n);
  bool divides_in_vectors(ElementType type) const;
  /// The lesser or greater of two scalars; null where LLVM does it well.
  Value* extremum(const kernel::Node& n, Value* x, Value* y);
  Value* wide_of(const Lanes& lanes);
  Value* wide(const kernel::Node& n);
  /// An index from a 64-bit number.
  Lanes index_from(Value* wide, int64_t stride);
  Lanes index_from(Value* wide) override { return index_from(wide, 0); }

  // --- emit_patterns.cpp
  struct PatternPlaces;
  /// False, without emitting code, if there is no pattern.
  bool lanes_by_patterns(const kernel::Node& n);
  void rows_by_pattern(const kernel::Node& n, const RowPatterns& patterns);
  void vectors_of_pattern(const kernel::Node& n, const RowPattern& pattern);
  llvm::Constant* constants_of_pattern(kernel::ValueId value);
  void set_pattern_indices(const kernel::Node& n);
  /// False, without a value, if the operation's result is no number that the pattern knows.
  bool known_by_pattern(const kernel::Node& n);
  Value* index_at_pattern(kernel::ValueId value);
  std::optional<PatternPlaces> pattern_places(const kernel::Node& n);
  Value* constant_mask(const std::function<bool(int64_t)>& holds);
  bool load_by_pattern(const kernel::Node& n);
  bool store_by_pattern(const kernel::Node& n);

  // --- emit_math.cpp
  Value* math(const kernel::Node& n, Value* x, Value* y);
  /// The module's shared function for the node's math function, on values of the arguments' types.
  llvm::Function* math_body(const kernel::Node& n, llvm::ArrayRef<Value*> arguments,
                            const codegen::MathTarget& target);
  /// Math functions of one kind, and the nodes after the first of them that they depend on.
  struct Batch {
    std::vector<kernel::NodeId> functions;
    std::vector<kernel::NodeId> before;
  };
  Batch batch_of(const std::vector<kernel::NodeId>& nodes, size_t first, size_t most,
                 const std::set<kernel::NodeId>& done) const;
  /// Emits the function at `first` together with others of its kind, if there are enough, and adds
  /// the emitted nodes to `done`.
  void math_at_once(const std::vector<kernel::NodeId>& nodes, size_t first,
                    std::set<kernel::NodeId>& done);

  // --- emit_control.cpp
  /// Calls body(i) with i from `low` up to `high`, by `step`.
  void loop(Value* low, Value* high, int64_t step, const std::function<void(Value*)>& body);
  /// A loop with loop-carried values.
  Many loop(Value* low, Value* high, int64_t step, const Ids& like, const Many& inits,
            const std::function<Many(Value*, const Many&)>& body);
  void for_loop(const kernel::Node& n) override;
  void while_loop(const kernel::Node& n) override;
  void if_else(const kernel::Node& n) override;
  void divergent_if(const kernel::Node& n);
  bool only_computes(kernel::BlockId id) const;
  Many masked_block(kernel::BlockId id, Value* mask, const Ids& like);
  void poll_stop();

  // --- emit_lanes.cpp
  void lanes(const kernel::Node& n) override;
  /// Whether a loop of these extents over block `id` is to be unrolled: a few simple operations,
  /// with at most `most` iterations in a dimension.
  bool is_tiny(const Dims& extents, kernel::BlockId id, int64_t most = 7) const;
  /// Calls body() for all indices, which are constants.
  void unrolled(const Ids& arguments, const Dims& extents, const std::function<void()>& body);
  /// The dimension that becomes vectors, and their width; 1: one iteration at a time.
  struct VectorPlan {
    size_t dimension = 0;
    int64_t width = 1;
    bool keeps_order = false;  ///< Instructions of several vectors stay in the order of the kernel.
  };
  void keep_order();
  bool has_row_of_leaves(const kernel::Node& reduce) const;
  bool reduces_rows(const kernel::Node& n) const;
  VectorPlan plan_of(const kernel::Node& n);
  std::optional<size_t> most_live(const kernel::Node& lanes, const Varying& varying) const;
  struct Abreast {
    int64_t vectors = 1;
    bool keeps_order = false;
  };
  Abreast abreast_of(const kernel::Node& n, const Varying& varying, int64_t extent,
                     int64_t in_register) const;
  bool flatten(kernel::BlockId block, std::vector<kernel::NodeId>& nodes) const;
  /// A lanes loop with as many of its last dimensions as possible in the last one, along which its
  /// vectors then are. The node is a copy: its blocks are the kernel's.
  struct FlatLanes {
    kernel::Node node;
    std::optional<int64_t>
        rows;  ///< In the last dimension, if the body is an `if` on their number.
  };
  FlatLanes flattened(const kernel::Node& n) const;
  /// The `if` that a body consists of, if it bounds the index of dimension `first` by the same in
  /// all later ones.
  std::optional<kernel::NodeId> rows_bound(const kernel::Node& n, size_t first) const;
  /// Emits loops over all dimensions of `extents` except `except`; their indices go to `arguments`.
  void nest(const Ids& arguments, const Dims& extents, std::optional<size_t> except,
            const std::function<void()>& body);
  bool may_repeat(const kernel::Node& n) const;
  bool moves_apart(const kernel::Node& n, kernel::ValueId lane) const;
  /// Calls body() for each vector of `count` iterations of the index `lane` of loop `n`, with a
  /// mask in the last one if it is not full, or over elements of the one before.
  void strips(const kernel::Node& n, kernel::ValueId lane, Value* count,
              const std::function<void()>& body);
  /// The number of iterations of `lane` in which the body has an effect, if the body is a single
  /// `if` that bounds the index.
  Value* bounded(const kernel::Block& body, kernel::ValueId lane, int64_t extent,
                 const Varying& varying);
  /// The same for a flattened loop whose body is an `if` that bounds its rows.
  Value* bounded_rows(const kernel::Block& body, kernel::ValueId lane, int64_t rows,
                      int64_t extent);
  Value* places_left(const kernel::Block& body, kernel::ValueId lane, int64_t extent);
  void in_lanes(int64_t width, const Varying& varying, const std::function<void()>& body);

  /// Whether `value` increases by one from each iteration of `lane` to the next in the body of a
  /// lanes loop.
  bool grows_by_one(const kernel::Node& n, kernel::ValueId value, kernel::ValueId lane) const;

  // --- emit_columns.cpp
  /// A body split at its only serial reduction.
  struct Columns {
    std::vector<kernel::NodeId> before;
    const kernel::Node* reduce = nullptr;
    std::vector<kernel::NodeId> after;
  };
  std::optional<Columns> columns_of(const kernel::Node& n, const Varying& varying) const;
  bool loads_along_lanes(kernel::BlockId id, const Varying& varying) const;
  /// Within in_lanes(): false, without emitting code, if the body is not a sum down columns.
  bool lanes_down_columns(const kernel::Node& n, kernel::ValueId lane, int64_t extent,
                          Value* count);
  std::vector<kernel::NodeId> transposed_loads(const kernel::Node& n, kernel::ValueId lane,
                                               kernel::ValueId down) const;
  bool only_stores_follow(const kernel::Node& n, kernel::NodeId from) const;
  /// False, without emitting code, if there is nothing to transpose.
  bool lanes_transposed(const kernel::Node& n, const VectorPlan& plan);
  void squares(const kernel::Node& n, size_t along, size_t down, int64_t size,
               const std::vector<kernel::NodeId>& loads);
  /// Lanes of a vector, and how many of them are loaded.
  struct SquareRow {
    int64_t size = 0;
    int64_t count = 0;
  };
  void load_rows(const kernel::Node& n, const SquareRow& row,
                 const std::vector<kernel::NodeId>& loads,
                 std::map<kernel::NodeId, std::vector<Value*>>& rows);

  // --- emit_reduce.cpp
  void reduce(const kernel::Node& n) override;
  void reduce_by_one(const kernel::Node& n);
  llvm::IntegerType* counter_type(int64_t) override { return b_.getInt64Ty(); }
  bool reduce_by_vectors(const kernel::Node& n);
  class PartialSums;
  /// Combines the lanes of each of `vectors` into one value.
  Many horizontal(const kernel::Node& n, Many vectors);
  /// The identity elements of the combination, as vectors; empty if they are not known.
  Many neutral(const kernel::Node& n);

  // --- emit_scan.cpp
  void scan(const kernel::Node& n) override;
  bool scan_by_vectors(const kernel::Node& n);
  class VectorScan;

  // --- emit_contract.cpp
  void contract(const kernel::Node& n) override;
  llvm::Function* micro_kernel(const MicroTile& tile, const TileElements& elements, int64_t count);

  // --- emit_memory.cpp
  struct Address {
    Value* pointer = nullptr;  ///< The address of lane 0, or a vector with that of every lane.
    int64_t stride = 0;        ///< From lane to lane, in elements: 0, 1 or -1 unless scattered.
    bool scattered = false;    ///< `pointer` is a vector.
    Value* first = nullptr;    ///< The address of lane 0 of scattered lanes that `stride` is apart.
    /// The memory of scattered elements of less than 32 bits, and their places in it.
    Value* base = nullptr;
    Value* places = nullptr;
  };
  Address address(kernel::MemoryId memory, const Ids& indices, size_t first);
  void load(const kernel::Node& n) override;
  void store(const kernel::Node& n) override;
  void atomic(const kernel::Node& n) override;
  void declare(kernel::MemoryId memory) override;
  /// Memory of a workgroup: on the stack or in scratch memory.
  Value* memory_of(int64_t size);
  Value* mask_or_all();
  Value* masked_load(llvm::FixedVectorType* vector, Value* from, llvm::Align align, Value* mask);
  void masked_store(Value* value, Value* to, llvm::Align align, Value* mask);
  Value* reversed(Value* vector);
  /// The lowest address of the lanes, where a vector in memory begins: with a stride of -1 that of
  /// the last lane.
  Value* lowest(const Address& where, llvm::Type* element);
  Value* gathered_in_words(const Address& where, llvm::Type* element);

  // --- emit_runs.cpp
  /// The place of an access, in elements from the start of its memory: factors of values, plus a
  /// constant.
  struct Offset {
    std::map<kernel::ValueId, int64_t> terms;
    int64_t constant = 0;
    int visits = 0;  ///< Values looked at; beyond a bound a value is a term as it is.
  };
  void add_terms(kernel::ValueId value, int64_t factor, Offset& offset) const;
  Offset offset_of(const kernel::Node& n) const;
  int64_t apart(const kernel::Node& n);
  /// A load or store and those that follow it, for the `size` elements from its own on;
  /// nothing unless they are complete.
  std::vector<kernel::NodeId> run_of(const std::vector<kernel::NodeId>& nodes, size_t first,
                                     int64_t size) const;
  /// Emits the load or store at `first` together with those that access the elements between its
  /// lanes, and adds them to `done`; false, without emitting code, if there are none.
  bool joined(const std::vector<kernel::NodeId>& nodes, size_t first,
              std::set<kernel::NodeId>& done);
  void load_run(const std::vector<kernel::NodeId>& run, int64_t stride);
  bool lie_anywhere(const kernel::Node& n);
  /// The vectors of a load whose lanes lie anywhere, and of that of the elements behind it.
  void gather_pair(const std::vector<kernel::NodeId>& pair);
  /// The vectors of a load whose lanes are `stride` elements apart, and of those of the elements
  /// behind it, `count` in all.
  std::vector<Value*> loads_between(const kernel::Node& n, size_t count, int64_t stride);
  /// The same by transposed squares of `edge` lanes and as many of their elements.
  std::vector<Value*> loads_in_squares(const kernel::Node& n, int64_t count, int64_t stride,
                                       int64_t edge);
  /// The vectors of each load of the leaves of a reduction over rows that lie one after the other
  /// in the lanes, one for each leaf.
  std::map<kernel::NodeId, std::vector<Value*>> rows_of_leaves(const kernel::Node& n);
  /// The lanes of a load that are a few elements apart; null if they are not, or some are masked.
  Value* load_apart(const kernel::Node& n);
  void store_run(const std::vector<kernel::NodeId>& run);
  void store_in_squares(const kernel::Node& n, const std::vector<Value*>& values, Value* to,
                        int64_t edge);
  /// The mask of a lane for so many elements.
  Value* mask_of_row(int64_t lane, int64_t elements);
  /// Lanes whose elements, `pieces` of them each, are as many vectors of one register.
  struct LaneGroup {
    int64_t first = 0;
    int64_t lanes = 0;
    size_t pieces = 0;
  };
  int64_t lanes_of_register(ElementType type) const;
  Value* load_group_apart(const kernel::Node& n, Value* from, int64_t stride,
                          const LaneGroup& group);
  /// The lanes of vectors of one type, a power of two of them, in one.
  Value* side_by_side(std::vector<Value*> groups);
  /// The mask of vector `piece` that the lanes of a group access together; null: all lanes.
  Value* mask_of_piece(const LaneGroup& group, size_t piece, bool backwards);
  /// The address of lane 0; operands from `first` on are the indices.
  Value* scalar_address(const kernel::Node& n, size_t first);

  const int64_t vector_bytes_;
  BasicBlock* exit_ = nullptr;
  Value* scratch_ = nullptr;
  Value* stops_ = nullptr;
  int64_t scratch_bytes_ = 0;
  std::map<std::pair<kernel::OpCode, ElementType>, int64_t> math_in_place_;  ///< Scalar uses.

  // The emitter's current state.
  int64_t width_ = 1;
  const Varying* varying_ = nullptr;
  Value* mask_ = nullptr;                      ///< Null: all lanes.
  std::map<kernel::NodeId, Value*> provided_;  ///< Values of loads that are already in registers.
  const RowPattern* pattern_ = nullptr;        ///< Within lanes_by_patterns().
  Value* first_row_ = nullptr;                 ///< The number of the first row.
  int64_t pattern_place_ = 0;                  ///< Lane 0 of the current vector, in elements.
  kernel::NodeId taken_ = kernel::kNone;  ///< An `if` whose condition holds in all lanes that run.
};

}  // namespace tenon::cpu
