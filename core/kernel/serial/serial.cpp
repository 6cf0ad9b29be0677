#include "core/kernel/serial/serial.h"

#include "core/kernel/ir/structure.h"
#include "core/kernel/verify/verifier.h"
#include "core/types/serial.h"

namespace tenon::serial {
template <>
inline constexpr uint64_t kEnumEnd<kernel::Space> = enumerator_count<kernel::Space>();
template <>
inline constexpr uint64_t kEnumEnd<kernel::Access> = enumerator_count<kernel::Access>();
template <>
inline constexpr uint64_t kEnumEnd<kernel::AtomicKind> = enumerator_count<kernel::AtomicKind>();
}  // namespace tenon::serial

namespace tenon::kernel {

template <class A>
void serialize(A& a, serial::Of<A, Memory>& m) {
  a(m.name, m.space, m.type, m.dims, m.strides, m.access, m.over, m.packed, m.lane_rank);
}

namespace {

using serial::ArchiveReader;
using serial::ArchiveWriter;

template <class A>
void head_fields(A& a, serial::Of<A, Kernel>& k) {
  a(k.name, k.label, k.index_type, k.memories, k.buffer_count, k.scalar_names, k.grid);
}

template <class A>
void node_fields(A& a, serial::Of<A, Node>& n) {
  a(n.type, n.from, n.atomic, n.over_lanes, n.commutative, n.has_pad, n.clip, n.transpose_a,
    n.transpose_b, n.memories, n.extents, n.by);
}

// Values in the file: constants (type, bits), scalars (type), then arguments and results in order.
class KernelWriter {
 public:
  KernelWriter(ArchiveWriter& a, const Kernel& kernel)
      : a_(a), kernel_(kernel), ids_(kernel.values.size()) {}

  void run() {
    head_fields(a_, kernel_);
    std::vector<std::pair<ElementType, uint64_t>> constants;
    for (ValueId v = 0; v < kernel_.values.size(); ++v) {
      const Value& value = kernel_.value(v);
      if (value.kind != ValueKind::kConstant) continue;
      ids_[v] = next_++;
      constants.emplace_back(value.type, value.bits);
    }
    a_(constants);
    std::vector<ElementType> scalars;
    for (const ValueId v : kernel_.scalars) {
      ids_[v] = next_++;
      scalars.push_back(kernel_.value(v).type);
    }
    a_(scalars);
    block(kernel_.body);
  }

 private:
  void define(const std::vector<ValueId>& values) {
    std::vector<ElementType> types;
    for (const ValueId v : values) {
      ids_[v] = next_++;
      types.push_back(kernel_.value(v).type);
    }
    a_(types);
  }

  void block(BlockId id) {
    const Block& b = kernel_.block(id);
    define(b.arguments);
    a_.number(b.nodes.size());
    for (const NodeId n : b.nodes) node(kernel_.node(n));
  }

  void node(const Node& n) {
    a_.symbol(op_name(n.op));
    node_fields(a_, n);
    std::vector<uint64_t> operands;
    for (const ValueId v : n.operands) operands.push_back(ids_[v]);
    a_(operands);
    for (const BlockId b : n.blocks) block(b);
    define(n.results);
  }

  ArchiveWriter& a_;
  const Kernel& kernel_;
  std::vector<uint64_t> ids_;
  uint64_t next_ = 0;
};

class KernelReader {
 public:
  KernelReader(ArchiveReader& a, Kernel& kernel) : a_(a), kernel_(kernel) {}

  void run() {
    kernel_ = {};
    head_fields(a_, kernel_);
    std::vector<std::pair<ElementType, uint64_t>> constants;
    a_(constants);
    for (const auto& [type, bits] : constants) {
      kernel_.values.push_back({type, ValueKind::kConstant, bits, kNone});
    }
    std::vector<ElementType> scalars;
    a_(scalars);
    for (const ElementType type : scalars) {
      kernel_.scalars.push_back(static_cast<ValueId>(kernel_.values.size()));
      kernel_.values.push_back({type, ValueKind::kScalar, 0, kNone});
    }
    kernel_.body = block(0);
  }

 private:
  std::vector<ValueId> define(ValueKind kind, NodeId node) {
    std::vector<ElementType> types;
    a_(types);
    std::vector<ValueId> ids;
    for (const ElementType type : types) {
      ids.push_back(static_cast<ValueId>(kernel_.values.size()));
      kernel_.values.push_back({type, kind, 0, node});
    }
    return ids;
  }

  BlockId block(int depth) {
    const auto id = static_cast<BlockId>(kernel_.blocks.size());
    kernel_.blocks.emplace_back();
    if (depth > kMostNesting) {
      a_.fail("blocks nested more than {} deep", kMostNesting);
      return id;
    }
    kernel_.blocks[id].arguments = define(ValueKind::kArgument, kNone);
    for (size_t left = a_.count(); left > 0 && a_.ok(); --left) {
      const NodeId added = node(depth);
      kernel_.blocks[id].nodes.push_back(added);
    }
    return id;
  }

  NodeId node(int depth) {
    const auto id = static_cast<NodeId>(kernel_.nodes.size());
    kernel_.nodes.emplace_back();
    Node n;
    const std::string_view name = a_.symbol();
    const std::optional<OpCode> op = op_from_name(name);
    if (!op) a_.fail("there is not an operation '{}'", name);
    if (!a_.ok()) return id;
    n.op = *op;
    node_fields(a_, n);
    std::vector<uint64_t> operands;
    a_(operands);
    for (const uint64_t v : operands) {
      if (v >= kernel_.values.size()) a_.fail("an operand of {} is value {}", name, v);
      n.operands.push_back(static_cast<ValueId>(v));
    }
    const size_t blocks = is_scalar_op(n.op) ? 0 : statement_op(n.op).blocks;
    while (n.blocks.size() < blocks && a_.ok()) n.blocks.push_back(block(depth + 1));
    if (a_.ok()) n.results = define(ValueKind::kResult, id);
    kernel_.nodes[id] = std::move(n);
    return id;
  }

  ArchiveReader& a_;
  Kernel& kernel_;
};

}  // namespace

void serialize(ArchiveWriter& a, const Kernel& kernel) { KernelWriter(a, kernel).run(); }
void serialize(ArchiveReader& a, Kernel& kernel) { KernelReader(a, kernel).run(); }

std::string save(const Kernel& kernel) {
  ArchiveWriter writer;
  serialize(writer, kernel);
  return seal(kKernelFormat, std::move(writer).take());
}

namespace {

Result<Kernel> read_kernel(const serial::Unsealed& file) {
  ArchiveReader reader(file.payload, file.version);
  Kernel kernel;
  serialize(reader, kernel);
  if (reader.ok() && reader.rest() != 0) reader.fail("{} bytes after the kernel", reader.rest());
  TENON_TRY(Status(reader.status()));
  return kernel;
}

}  // namespace

Result<Kernel> load_kernel(std::string_view bytes, bool damaged_too) {
  TENON_ASSIGN(const serial::Unsealed file, serial::unseal(bytes, kKernelFormat, damaged_too));
  TENON_ASSIGN(Kernel kernel, read_kernel(file));
  TENON_TRY(verify(kernel));
  return kernel;
}

Result<Kernel> load_verified_kernel(std::string_view bytes) {
  TENON_ASSIGN(const serial::Unsealed file, serial::unseal(bytes, kKernelFormat));
  TENON_ASSIGN(Kernel kernel, read_kernel(file));
  if (file.version != kKernelFormat.newest) TENON_TRY(verify(kernel));
  return kernel;
}

}  // namespace tenon::kernel
