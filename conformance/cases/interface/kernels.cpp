// Constructs of kernels (docs/kernel-ir.md): each operation on each type, each statement, each rule
// K1 … K10. A kernel runs through the interface, and on the kernel interpreter; both give the same
// bytes, but for functions that the device computes by its own (TargetInfo::math).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/cases/interface/kernel_texts.h"
#include "conformance/cases/interface/seam_device.h"
#include "conformance/cases/values.h"
#include "conformance/compare/kernel_listing.h"
#include "conformance/compare/tolerance.h"
#include "core/backend/adapter/adapter.h"
#include "core/base/random.h"
#include "core/kernel/interpreter/interpreter.h"
#include "core/kernel/ir/builder.h"
#include "core/kernel/text/text.h"
#include "core/kernel/verify/verifier.h"
#include "core/types/float_convert.h"

namespace tenon::conformance {
namespace {

using kernel::Access;
using kernel::Kernel;
using kernel::MemoryId;
using kernel::Values;
using enum ElementType;

/// Contents of the buffers of a kernel, before and after.
using Memories = std::vector<Literal>;

Bytes stored(const Literal& array) {
  const auto bytes = std::as_bytes(std::span(array.data()));
  return {bytes.begin(), bytes.end()};
}

Result<std::vector<Bytes>> interpreted(const Kernel& kernel, std::vector<Bytes> buffers,
                                       const std::vector<uint64_t>& scalars) {
  std::vector<kernel::BufferArgument> arguments;
  for (Bytes& each : buffers) arguments.push_back({each.data(), each.size()});
  TENON_TRY(kernel::Interpreter(kernel).run(arguments, scalars));
  return buffers;
}

struct KernelRun {
  Kernel kernel;  // As the device got it.
  std::vector<Bytes> buffers;
};

Result<KernelRun> on_device(SeamDevice& d, const Kernel& kernel, const std::vector<Bytes>& buffers,
                            const std::vector<uint64_t>& scalars) {
  TENON_ASSIGN(auto loaded, d.load(std::vector<Kernel>{kernel}));
  std::vector<backend::MemoryAddress> places;
  for (const Bytes& each : buffers) {
    TENON_ASSIGN(const auto memory, d.allocate(std::max<int64_t>(1, std::ssize(each))));
    if (!each.empty()) TENON_TRY(d.upload({memory}, each));
    places.push_back({memory});
  }
  TENON_TRY(d.launch(loaded.module, places, scalars));
  std::vector<Bytes> results;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].empty()) {
      results.emplace_back();
      continue;
    }
    TENON_ASSIGN(Bytes got, d.download(places[i], std::ssize(buffers[i])));
    results.push_back(std::move(got));
  }
  return KernelRun{std::move(loaded.kernels[0]), std::move(results)};
}

// Shows the kernel beside what the interpreter computes for an element that the device got wrong.
void show_kernel(SeamDevice& d, const KernelRun& ran, const std::vector<Bytes>& buffers,
                 const std::vector<uint64_t>& scalars, size_t buffer, size_t element) {
  LaunchedKernel launched{ran.kernel, buffers, scalars, {}};
  for (size_t i = 0; i < buffers.size(); ++i) launched.same_as.push_back(i);
  const size_t width = storage_bytes(ran.kernel.memories[buffer].type);
  d.set_listing(launch_listing(launched, backend::last_render_options(), buffer,
                               ran.buffers[buffer], element * width, (element + 1) * width));
}

// The elements of a buffer, for comparison and messages.
Literal as_literal(const kernel::Memory& memory, const Bytes& bytes) {
  const auto width = static_cast<int64_t>(storage_bytes(memory.type));
  Literal array(Shape(memory.type, {std::ssize(bytes) / width}));
  std::memcpy(array.mutable_data().data(), bytes.data(), bytes.size());
  return array;
}

// Units by which a function of the device may differ from the shared expansion: its own error, and
// the expansion's.
double allowed_ulp(const backend::TargetInfo& target, const kernel::ScalarOp& op,
                   ElementType type) {
  if (op.ulp_bound == 0) return 0;
  for (const backend::MathInfo& own : target.math) {
    if (own.function == op.name && own.type == type) return own.ulp + op.ulp_bound;
  }
  return 0;
}

bool is_close(const Literal& a, const Literal& b, int64_t i, double ulp) {
  const ElementType type = a.element_type();
  if (!is_float(type)) return a.get_integer(i) == b.get_integer(i);
  const double x = a.get_double(i);
  const double y = b.get_double(i);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return std::signbit(x) == std::signbit(y);
  return ulp > 0 && std::abs(x - y) <= 2 * ulp * epsilon(type) * std::abs(x);
}

Status run_both(SeamDevice& d, const Kernel& kernel, const std::vector<Bytes>& buffers,
                const std::vector<uint64_t>& scalars = {}, double ulp = 0) {
  TENON_TRY(kernel::verify(kernel));
  TENON_ASSIGN(const auto expected, interpreted(kernel, buffers, scalars));
  TENON_ASSIGN(const KernelRun ran, on_device(d, kernel, buffers, scalars));
  const std::vector<Bytes>& got = ran.buffers;
  for (size_t b = 0; b < got.size(); ++b) {
    const kernel::Memory& memory = kernel.memories[b];
    if (memory.packed || got[b].empty()) {
      TENON_TRY(expect_bytes(fmt::format("buffer %{}", memory.name), got[b], expected[b]));
      continue;
    }
    const Literal a = as_literal(memory, expected[b]);
    const Literal y = as_literal(memory, got[b]);
    for (int64_t i = 0; i < a.element_count(); ++i) {
      if (is_close(a, y, i, ulp)) continue;
      std::string inputs;
      for (size_t k = 0; k < b && k < buffers.size(); ++k) {
        if (kernel.memories[k].access != Access::kIn) continue;
        const Literal x = as_literal(kernel.memories[k], buffers[k]);
        if (x.element_count() == a.element_count()) inputs += ", " + x.element_to_string(i);
      }
      show_kernel(d, ran, buffers, scalars, b, static_cast<size_t>(i));
      return internal_error(
          "buffer %{} element {}: {}, expected {}{}{}", memory.name, i, y.element_to_string(i),
          a.element_to_string(i),
          inputs.empty() ? "" : "; operands: ", inputs.empty() ? inputs : inputs.substr(2));
    }
  }
  return {};
}

// --- Operations

constexpr int64_t kElements = 512;

ElementType result_of(const kernel::ScalarOp& op, ElementType type, ElementType stated) {
  if (op.result == kernel::ResultType::kStated) return stated;
  return op.result == kernel::ResultType::kPred ? kPred : type;
}

Literal operand(ElementType type, size_t index, Random& random) {
  if (is_pred(type)) {
    Literal array(Shape(type, {kElements}));
    for (int64_t i = 0; i < kElements; ++i) array.set_integer(i, random.below(2));
    return array;
  }
  // Half of them special values, half bit patterns near the first operand's.
  Literal array = random_values(Shape(type, {kElements}), ValueClass::kMixed, random);
  const Literal all = patterns(type, index, 1, random);
  for (int64_t i = 0; i < kElements; i += 2) {
    const int64_t from = random.below(all.element_count());
    std::memcpy(array.mutable_data().data() + i * static_cast<int64_t>(storage_bytes(type)),
                all.data().data() + from * static_cast<int64_t>(storage_bytes(type)),
                storage_bytes(type));
  }
  return array;
}

Kernel kernel_of(kernel::OpCode code, ElementType type, ElementType stated) {
  const kernel::ScalarOp& op = kernel::scalar_op(code);
  kernel::Builder b("op");
  std::vector<MemoryId> inputs;
  for (int i = 0; i < op.operands; ++i) {
    const ElementType t = code == kernel::OpCode::kSelect && i == 0 ? kPred : type;
    inputs.push_back(b.buffer(fmt::format("x{}", i), t, {kElements}, Access::kIn));
  }
  const MemoryId y = b.buffer("y", result_of(op, type, stated), {kElements}, Access::kOut);
  const Values group = b.grid({4});
  b.lanes({kElements / 4}, [&](const Values& lane) {
    const auto i = b.add(b.mul(group[0], b.index(kElements / 4)), lane[0]);
    Values operands;
    for (const MemoryId x : inputs) operands.push_back(b.load(x, {i}));
    b.store(b.op(code, operands, stated), y, {i});
  });
  return b.finish();
}

bool admits_type(const kernel::ScalarOp& op, ElementType type) {
  using kernel::kFloats, kernel::kIntegers, kernel::kPreds;
  return (is_float(type) && (op.types & kFloats) != 0) ||
         (is_integer(type) && (op.types & kIntegers) != 0) ||
         (is_pred(type) && (op.types & kPreds) != 0);
}

// Which types an operation may state; for the others its own.
std::vector<ElementType> stated_types(kernel::OpCode code, ElementType type) {
  if (kernel::scalar_op(code).result != kernel::ResultType::kStated) return {type};
  std::vector<ElementType> types;
  for (const ElementTypeInfo& info : element_types()) {
    if (is_complex(info.type) || info.type == type) continue;
    const bool same_width =
        bit_width(info.type) == bit_width(type) && is_pred(info.type) == is_pred(type);
    // The bits of a NaN are not defined.
    const bool keeps = same_width && (!is_float(type) || is_float(info.type));
    if (code == kernel::OpCode::kConvert || keeps) types.push_back(info.type);
  }
  return types;
}

void add_operation(CaseList& list, kernel::OpCode code, ElementType type, ElementType stated) {
  const kernel::ScalarOp& op = kernel::scalar_op(code);
  std::string name = fmt::format("kernel/op/{}/{}", op.name, name_of(type));
  if (op.result == kernel::ResultType::kStated) name += fmt::format("_to_{}", name_of(stated));
  ConformanceCase one = seam_case(name, [=](SeamDevice& d, uint64_t seed) -> Status {
    Random random(seed);
    const Kernel made = kernel_of(code, type, stated);
    std::vector<Bytes> buffers;
    for (size_t i = 0; i < made.buffer_count; ++i) {
      const ElementType t = made.memories[i].type;
      buffers.push_back(made.memories[i].access == Access::kIn
                            ? stored(operand(t, i, random))
                            : Bytes(kElements * storage_bytes(t)));
    }
    return run_both(d, made, buffers, {}, allowed_ulp(d.target(), kernel::scalar_op(code), type));
  });
  one.tier = type == kF32 || type == kS32 ? Tier::kQuick : Tier::kFull;
  list.cases.push_back(std::move(one));
}

// --- Statements and rules, as text

Literal contents(const kernel::Memory& memory, Random& random) {
  const Shape shape(memory.type, {memory.span()});
  if (is_integer(memory.type)) {
    const int64_t most = std::min<int64_t>(100, integer_max(memory.type));
    return random_integers(shape, is_signed_integer(memory.type) ? -most : 0, most, random);
  }
  return random_values(shape, ValueClass::kOrdinary, random);
}

// Two- and four-bit elements share bytes.
Bytes packed(const kernel::Memory& memory, Random& random) {
  const int64_t bits = memory.span() * bit_width(memory.type);
  Bytes bytes(static_cast<size_t>((bits + 7) / 8));
  for (std::byte& each : bytes) each = static_cast<std::byte>(random.bits());
  return bytes;
}

void add_text(CaseList& list, const KernelText& text) {
  ConformanceCase one = seam_case(
      fmt::format("kernel/{}", text.name), [&text](SeamDevice& d, uint64_t seed) -> Status {
        TENON_ASSIGN(const Kernel parsed, kernel::parse(text.text, "case"));
        Random random(seed);
        std::vector<Bytes> buffers;
        for (size_t i = 0; i < parsed.buffer_count; ++i) {
          const kernel::Memory& memory = parsed.memories[i];
          buffers.push_back(memory.packed ? packed(memory, random)
                                          : stored(contents(memory, random)));
        }
        return run_both(d, parsed, buffers);
      });
  one.tier = Tier::kQuick;
  list.cases.push_back(std::move(one));
}

}  // namespace

void add_kernel_cases(CaseList& list) {
  for (int i = 0; i < kernel::kScalarOpCount; ++i) {
    const auto code = static_cast<kernel::OpCode>(i);
    const kernel::ScalarOp& op = kernel::scalar_op(code);
    for (const ElementTypeInfo& info : element_types()) {
      if (is_complex(info.type) || !admits_type(op, info.type)) continue;
      for (const ElementType stated : stated_types(code, info.type))
        add_operation(list, code, info.type, stated);
    }
  }
  for (const KernelText& text : kernel_texts()) add_text(list, text);
}

}  // namespace tenon::conformance
