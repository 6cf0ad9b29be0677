#include "core/program/serial.h"

#include <algorithm>

#include "core/kernel/serial/serial.h"
#include "core/types/serial.h"

namespace tenon::serial {
template <>
inline constexpr uint64_t kEnumEnd<program::BufferKind> = enumerator_count<program::BufferKind>();
template <>
inline constexpr uint64_t kEnumEnd<program::Combiner> = enumerator_count<program::Combiner>();
template <>
inline constexpr uint64_t kEnumEnd<program::FftKind> = enumerator_count<program::FftKind>();
}  // namespace tenon::serial

namespace tenon::program {

// The members of each struct, for writing and reading.

template <class A>
void serialize(A& a, serial::Of<A, Buffer>& b) {
  a(b.type, b.dims, b.kind, b.index, b.offset, b.view_of);
}
template <class A>
void serialize(A& a, serial::Of<A, Contraction>& c) {
  a(c.lhs_batch, c.rhs_batch, c.lhs_contracting, c.rhs_contracting);
}
template <class A>
void serialize(A& a, serial::Of<A, ConvolutionDims>& dims) {
  a(dims.batch, dims.feature, dims.spatial);
}
template <class A>
void serialize(A& a, serial::Of<A, Convolution>& c) {
  a(c.input, c.kernel, c.output, c.strides, c.padding_low, c.padding_high, c.input_dilation,
    c.kernel_dilation, c.reversed, c.feature_groups, c.batch_groups);
}
template <class A>
void serialize(A& a, serial::Of<A, Sort>& s) {
  a(s.dimension, s.key, s.descending, s.total_order);
}
template <class A>
void serialize(A& a, serial::Of<A, Scan>& s) {
  a(s.dimension, s.reverse, s.combiner);
}
template <class A>
void serialize(A& a, serial::Of<A, Fft>& f) {
  a(f.kind, f.lengths);
}
template <class A>
void serialize(A& a, serial::Of<A, CompositeAttribute>& attribute) {
  a(attribute.name, attribute.value);
}
template <class A>
void serialize(A& a, serial::Of<A, Composite>& c) {
  a(c.name, c.version, c.attributes);
}

namespace {

// Version 1 had no composites, but two kinds of calls that no backend took. They become composites
// with these names; their lowered steps compute the same.
struct RandomBitsOf1 {
  uint8_t algorithm = 0;
};
template <class A>
void serialize(A& a, serial::Of<A, RandomBitsOf1>& r) {
  a(r.algorithm);
}
struct StridedCopyOf1 {
  int64_t start = 0;
  Dims strides;
};
template <class A>
void serialize(A& a, serial::Of<A, StridedCopyOf1>& c) {
  a(c.start, c.strides);
}
using LibraryCallOf1 =
    std::variant<Contraction, Convolution, Sort, Scan, Fft, RandomBitsOf1, StridedCopyOf1>;

LibraryCall upgrade(RandomBitsOf1 call) {
  return Composite{"tenon.random_bits", 0, {{"algorithm", Dims{call.algorithm}}}};
}
LibraryCall upgrade(StridedCopyOf1 call) {
  return Composite{
      "tenon.strided_copy", 0, {{"start", Dims{call.start}}, {"strides", std::move(call.strides)}}};
}
LibraryCall upgrade(auto call) { return call; }

void call_field(serial::ArchiveWriter& a, const LibraryCall& call) { a(call); }
void call_field(serial::ArchiveReader& a, LibraryCall& call) {
  if (a.version() >= 2) return a(call);
  LibraryCallOf1 old;
  a(old);
  call = std::visit([](auto& each) { return upgrade(std::move(each)); }, old);
}

}  // namespace

template <class A, class Action>
  requires requires { Action::kOnHost; }
void serialize(A& a, Action& action) {
  action.members(action, [&](auto, auto& member) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, LibraryCall>) {
      call_field(a, member);
    } else {
      a(member);
    }
  });
}
template <class A>
void serialize(A& a, serial::Of<A, Step>& step) {
  a(step.action, step.depends, step.label);
}
template <class A>
void serialize(A& a, serial::Of<A, Sequence>& sequence) {
  a(sequence.steps);
}
template <class A, class P>
void program_fields(A& a, P& p) {
  a(p.name, p.kernels, p.constants, p.buffers, p.sequences, p.parameters, p.results, p.donated,
    p.temporary_bytes);
}

void serialize(serial::ArchiveWriter& a, const Program& program) { program_fields(a, program); }
void serialize(serial::ArchiveReader& a, Program& program) { program_fields(a, program); }
void serialize(serial::ArchiveWriter& a, const StepRange& range) {
  a(range.sequence, range.begin, range.end);
}
void serialize(serial::ArchiveReader& a, StepRange& range) {
  a(range.sequence, range.begin, range.end);
}
void serialize(serial::ArchiveWriter& a, const MemoryRef& ref) { a(ref.kind, ref.index); }
void serialize(serial::ArchiveReader& a, MemoryRef& ref) { a(ref.kind, ref.index); }

namespace {

// A call other than a composite is written as version 1, which plug-ins of earlier releases read.
uint32_t version_of(const LibraryCall& call) {
  return std::holds_alternative<Composite>(call) ? 2 : 1;
}
uint32_t version_of(const CustomCall& call) {
  const bool has_array = std::ranges::any_of(
      call.config, [](const auto& entry) { return std::holds_alternative<Literal>(entry.second); });
  return has_array ? 3 : 1;
}
uint32_t version_of(const Program& program) {
  uint32_t version = 1;
  for (const Sequence& sequence : program.sequences) {
    for (const Step& step : sequence.steps) {
      if (const auto* call = std::get_if<LibraryCallStep>(&step.action)) {
        version = std::max(version, version_of(call->call));
      } else if (const auto* custom = std::get_if<CustomCall>(&step.action)) {
        version = std::max(version, version_of(*custom));
      }
    }
  }
  return version;
}

}  // namespace

std::string save(const Program& program) {
  serial::ArchiveWriter writer;
  writer(program);
  return seal(kProgramFormat, std::move(writer).take(), version_of(program));
}

std::string save_call(const LibraryCall& call) {
  serial::ArchiveWriter writer;
  writer(call);
  return seal(kCallFormat, std::move(writer).take(), version_of(call));
}

Result<LibraryCall> load_call(std::string_view bytes) {
  TENON_ASSIGN(const serial::Unsealed file, serial::unseal(bytes, kCallFormat));
  serial::ArchiveReader reader(file.payload, file.version);
  LibraryCall call;
  call_field(reader, call);
  TENON_TRY(Status(reader.status()));
  return call;
}

namespace {

Result<Program> read_program(const serial::Unsealed& file) {
  serial::ArchiveReader reader(file.payload, file.version);
  Program program;
  reader(program);
  if (reader.ok() && reader.rest() != 0) reader.fail("{} bytes after the program", reader.rest());
  TENON_TRY(Status(reader.status()));
  return program;
}

}  // namespace

Result<Program> load_program(std::string_view bytes, bool damaged_too) {
  TENON_ASSIGN(const serial::Unsealed file, serial::unseal(bytes, kProgramFormat, damaged_too));
  TENON_ASSIGN(Program program, read_program(file));
  TENON_TRY(validate(program));
  return program;
}

Result<Program> load_validated_program(std::string_view bytes) {
  TENON_ASSIGN(const serial::Unsealed file, serial::unseal(bytes, kProgramFormat));
  TENON_ASSIGN(Program program, read_program(file));
  if (file.version != kProgramFormat.newest) TENON_TRY(validate(program));
  return program;
}

}  // namespace tenon::program
