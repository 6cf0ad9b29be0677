// The class that writes the source of one kernel. Private to core/kernel/render.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/analysis/ranges.h"
#include "core/kernel/render/names.h"
#include "core/kernel/render/source_writer.h"
#include "core/kernel/render/spelling.h"

namespace tenon::kernel {

using Names = std::vector<std::string>;

class SourceWriter {
 public:
  // The host launches `launched` workgroups, the number of the kernel before it was legalised.
  SourceWriter(const Kernel& kernel, int64_t launched, const RenderOptions& options,
               std::string function, std::set<std::string>& helpers)
      : kernel_(kernel),
        launched_(launched),
        spelling_(spelling_of(options.language)),
        lanes_(!spelling_.has_lanes() ? 1
               : options.fit_lanes    ? lanes_that_fit(kernel, options.lanes)
                                      : options.lanes),
        offset_bits_(spelling_.has_lanes() ? options.offset_bits : 0),
        stops_(spelling_.has_lanes() && options.stop),
        vector_bytes_(options.vector_bytes),
        // A kernel of one lane on a device with more of them is no work for vectors.
        strip_bytes_(spelling_.has_lanes() && options.lanes > 1 ? 0 : options.vector_bytes),
        // Functions behind a table are static: they need no symbols, and a function of the same
        // name in another library must not be called instead (C has a `random`).
        local_(!options.table.empty()),
        function_(std::move(function)),
        helpers_(helpers),
        ranges_(kernel),
        names_(kernel.values.size()),
        memories_(kernel.memories.size()) {}

  WrittenSource take();

 private:
  // --- Text

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(static_cast<size_t>(depth_) * 2, ' ');
    out_ += fmt::format(format, std::forward<Args>(args)...);
    out_ += '\n';
    ++lines_;
  }
  // States what the line that was written last computes.
  void mark(std::string name, ValueId value, NodeId node) {
    if (!is_partial_) values_.push_back({lines_ - 1, std::move(name), value, node});
  }
  NodeId id_of(const Node& n) const { return static_cast<NodeId>(&n - kernel_.nodes.data()); }
  static std::string comment(const std::string& text);
  std::string name_new(std::string_view wanted) { return names_table_.take(wanted); }
  std::string fresh() { return name_new(fmt::format("v{}", next_++)); }
  std::string text(ValueId value);
  Names texts(const std::vector<ValueId>& values, size_t first = 0) {
    Names list;
    for (size_t i = first; i < values.size(); ++i) list.push_back(text(values[i]));
    return list;
  }
  std::string_view type_of(ValueId value) { return type_text(kernel_.value(value).type); }
  static std::string_view stored(ElementType type) {
    return is_pred(type) ? "uint8_t" : type_text(type);
  }

  // --- The function

  // As many lanes as the longest loop over lanes has turns: a power of two of at most `most`.
  static int64_t lanes_that_fit(const Kernel& kernel, int64_t most);
  /// A workgroup has several lanes; else its one lane runs everything.
  bool has_lanes() const { return spelling_.has_lanes() && lanes_ > 1; }

  std::string parameters();
  bool is_under(MemoryId m) const;

  // --- Loops

  /// Writes body() for each index of `extents`, in order; in a scope even if there are no extents.
  void nest(NodeId node, const std::vector<ValueId>& indices, const Dims& extents,
            const std::function<void()>& body);
  std::string_view index_text() const { return type_text(kernel_.index_type); }

  /// Computes indices from a linear index in row-major order.
  void decompose(NodeId node, const std::vector<ValueId>& indices, const Dims& extents,
                 const std::string& place);

  /// The type of a linear index, and of the index of a lane after the last one.
  std::string_view counter_text(int64_t count) const;

  void barrier();
  bool by_one_lane() const { return has_lanes() && !in_lanes_; }

  void lanes(const Node& n);

  // --- Variables

  /// Declares variables for values of these types.
  Names declare(const std::vector<ValueId>& like, const Names& inits);
  /// Assigns the operands of a yield, which have these names, to all variables at once.
  void assign(NodeId yield, const Names& variables, Names values);
  /// Writes the nodes of a block, whose yield gives the next values of `variables`.
  void assign_from(BlockId id, const std::vector<ValueId>& like, const Names& variables);
  void set(const std::vector<ValueId>& values, const Names& names, size_t first = 0);

  /// Writes the nodes of a block; returns the operands of its yield.
  Names block(BlockId id);

  void for_loop(const Node& n);

  // The next iteration may store to memory that a slower lane still reads in this one.
  void end_of_round();

  // Reads the flag of the host for all lanes, which have to leave a loop with barriers together.
  void read_stop();
  // True once the host wants while loops to end, before " | ".
  std::string is_stopped() const;

  void while_loop(const Node& n);

  void if_else(const Node& n);

  // --- Reductions

  /// Combines `values` into `variables`.
  void combine(const Node& n, const Names& variables, const Names& values);

  void reduce(const Node& n);

  /// Each lane reduces a part, then the lanes combine neighbouring parts in log steps. Parts are
  /// contiguous runs, in order; of a commutative reduction every lanes_-th leaf, so that lanes load
  /// neighbouring elements.
  void reduce_over_lanes(const Node& n);

  /// Arrays with an element for each lane; reductions share those of one type.
  Names partials_of(const Node& n);
  /// Variables with the values of an element of each array.
  Names elements_of(const Node& n, const Names& partials, const std::string& index);

  void reduce_part(const Node& n, const Names& partials, int64_t count, int64_t run);

  void combine_parts(const Node& n, const Names& partials, int64_t parts);

  // --- Strips: loops for compilers that make vectors (strips.cpp)

  /// Lanes that run side by side.
  struct LanesStrip {
    const Block& body;
    const ValueId index;
    const std::string place;  ///< The index of the first one.
    const std::string each;   ///< The number of a lane within the strip.
    const int64_t count;
    std::vector<const Node*> places;  ///< Linear functions of the lane, so far.
  };

  /// How many of `count` iterations that compute such values run side by side: `most` vectors, if
  /// there are as many strips; 1 if vectors do not pay.
  int64_t strip_width(const std::vector<ValueId>& values, int64_t count, int64_t strips,
                      int64_t most) const;
  /// Leaf and combination are of operations and loads alone.
  bool are_simple(const Node& reduction) const;
  /// A loop over the elements of a strip.
  void strip(const std::string& each, int64_t count, const std::function<void()>& body);
  /// Arrays with an element for each of a strip, and the texts of such elements.
  Names declare_strip(const std::vector<ValueId>& like, int64_t width);
  static Names elements(const Names& arrays, const std::string& index);

  /// In how many parts the reduction is kept; 1 if it is not.
  int64_t parts_of(const Node& n) const;
  void reduce_in_parts(const Node& n, int64_t width);
  /// Reduces all leaves into `parts`, arrays of `width` elements.
  void first_and_other_strips(const Node& n, const Names& parts, const std::string& each,
                              int64_t width);
  /// Loops over the strips but for the first: whole ones, and the last one of a row, which may have
  /// fewer elements.
  void other_strips(const Node& n, int64_t width,
                    const std::function<void(const std::string&)>& whole,
                    const std::function<void(const std::string&, int64_t)>& last);
  void combine_parts_of_strip(const Node& n, const Names& parts, const std::string& each,
                              int64_t width);

  /// A loop over lanes whose reductions load neighbouring elements in neighbouring lanes.
  bool run_side_by_side(const Node& n) const;
  int64_t lanes_side_by_side(const Node& n) const;
  void lanes_in_strips(const Node& n, int64_t width);
  void lanes_of_strip(const Node& n, ValueId index, const std::string& place, int64_t count);
  /// A loop over the lanes, with the places that the users need.
  void loop_of_strip(const LanesStrip& of, const std::vector<const Node*>& users,
                     const std::function<void()>& write);
  void run_of_strip(const LanesStrip& of, const std::vector<NodeId>& nodes);
  void reduction_of_strip(const LanesStrip& of, const Node& n);
  void write_places(const std::vector<const Node*>& places, const std::vector<const Node*>& users);
  /// The values that nodes of the body other than these use.
  std::set<ValueId> used_outside(const Block& body, const std::vector<NodeId>& nodes) const;

  // --- Parts in vector types (vectors.cpp)

  /// Arrays with an element for each part, `width` in all.
  struct StripParts {
    Names arrays;
    int64_t width;
  };
  /// The values of the leaf and the combination of a reduction that are vectors if neighbouring
  /// elements of dimension `inner` are; none if the reduction has to be written by elements.
  std::set<ValueId> vectors_of(const Node& n, size_t inner, int64_t width) const;
  /// Reduces all leaves into `width` parts in vectors, and those into fewer parts.
  StripParts parts_in_vectors(const Node& n, size_t inner, std::set<ValueId> vectors, int64_t width,
                              const std::string& each);
  /// Combines vectors into the vectors of these names.
  void combine_vectors(const Node& n, const Names& variables, const Names& values);
  bool is_vector(const Node& n) const { return vectors_.contains(n.results[0]); }
  std::string vector_text() const;
  void vector_load(const Node& n);
  void vector_scalar(const Node& n);

  // --- Products of tiles (products.cpp)

  /// Sums that a work-item keeps in registers at once: `down` x `across` blocks of rows x columns;
  /// `stride` elements lie between the rows of a block.
  struct ProductBlocks {
    int64_t down, across, rows, columns, stride;
  };
  ProductBlocks blocks_of(const Node& n) const;
  /// A pointer to where the box begins in the `which`-th memory of a contract, whose starts count.
  std::string tile_text(const Node& n, size_t which);
  void contract(const Node& n);
  /// The results of the lane (p, q), which is the `part`-th of its work-item.
  void product_of_lane(const Node& n, const std::string& p, const std::string& q,
                       const std::string& part);
  /// The most elements of a vector of the language, of which `count` is a multiple.
  int64_t vector_width(ElementType type, int64_t count) const;

  // --- Memory

  void declare_scratch(std::string_view type, const std::string& name, int64_t count);
  void load(const Node& n);
  void store(const Node& n);
  void atomic(const Node& n);
  /// The element that a load, store or atomic accesses.
  std::string element_text(const Node& n);
  void scratch(const Node& n);
  void private_memory(const Node& n);
  void scalar(const Node& n);
  void statement(const Node& n);

  const Kernel& kernel_;
  const int64_t launched_;
  const Spelling& spelling_;
  const int64_t lanes_;
  const int offset_bits_;
  const bool stops_;
  const int64_t vector_bytes_;
  const int64_t strip_bytes_;
  const bool local_;
  std::string function_;
  std::set<std::string>& helpers_;
  Ranges ranges_;
  NameTable names_table_;
  Names names_;     // of values
  Names memories_;  // of memories
  Names asides_type_;
  std::string out_;
  std::string heads_;                           // pointers made of bases and offsets
  std::string scratch_;                         // declarations of workgroup memory
  std::map<std::string_view, Names> partials_;  // arrays for reductions, by type
  std::string stop_, stopped_;
  std::set<ValueId> vectors_;  // values that are vectors of this type
  ElementType vector_type_ = ElementType::kF32;
  int64_t vector_width_ = 1;
  std::string lane_place_;  // the linear index of a loop over lanes
  std::vector<LineValue> values_;
  size_t lines_ = 0;  // of out_
  int depth_ = 0;
  int next_ = 0;
  bool is_partial_ = false;  // in a lane's part of a reduction
  bool in_lanes_ = false;
  bool loaded_ = false;  // outside lanes loops, since the last barrier
};

}  // namespace tenon::kernel
