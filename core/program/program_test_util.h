// Programs for tests.
#pragma once

#include <gtest/gtest.h>

#include "core/kernel/text/text.h"
#include "core/program/program.h"

namespace tenon::program::testing {

inline kernel::Kernel kernel_of(const std::string& text) {
  auto kernel = kernel::parse(text, "t");
  EXPECT_TRUE(kernel) << kernel.error().to_string();
  return std::move(*kernel);
}

inline Buffer buffer(BufferKind kind, uint32_t index, int64_t offset = 0) {
  Buffer b;
  b.type = ElementType::kF32;
  b.dims = {4};
  b.kind = kind;
  b.index = index;
  b.offset = offset;
  return b;
}

// y = (x + x) + x, through a temporary.
inline Program twice() {
  Program p;
  p.name = "p";
  p.kernels.push_back(kernel_of(
      "kernel @add(%x: in f32[4], %z: in f32[4], %y: out f32[4]) index s32 grid(%i: 4) {\n"
      "%a = load %x[%i] : f32\n%b = load %z[%i] : f32\n%c = add %a, %b : f32\n"
      "store %c, %y[%i] : f32\n}"));
  p.buffers = {buffer(BufferKind::kParameter, 0), buffer(BufferKind::kTemporary, 0),
               buffer(BufferKind::kResult, 0)};
  p.parameters = {0};
  p.results = {2};
  p.temporary_bytes = 64;
  p.sequences.resize(1);
  p.sequences[0].steps = {{Launch{0, {0, 0, 1}, {}}, {}, "first"},
                          {Launch{0, {1, 0, 2}, {}}, {}, "second"}};
  find_dependencies(p);
  return p;
}

// y = x + x, where y is initialised with x.
inline Program twice_in_place() {
  Program p = twice();
  p.kernels = {
      kernel_of("kernel @double(%x: inout f32[4]) index s32 grid(%i: 4) {\n"
                "%a = load %x[%i] : f32\n%b = add %a, %a : f32\nstore %b, %x[%i] : f32\n}")};
  p.donated = {0};
  p.sequences[0].steps = {{Copy{2, 0}, {}, "donated"}, {Launch{0, {2}, {}}, {}, "double"}};
  find_dependencies(p);
  return p;
}

inline Literal four(double value) {
  return Literal::scalar(ElementType::kF32, value).splat_to(Shape(ElementType::kF32, {4}));
}

// A loop and a branch: doubles x until its first element is 10 or more.
inline Program control_flow() {
  Program p = twice();
  p.kernels = {
      kernel_of("kernel @less(%x: in f32[4], %p: out pred[]) index s32 grid() {\n"
                "%a = load %x[0] : f32\n%c = lt %a, 10.0 : f32\nstore %c, %p[] : pred\n}"),
      kernel_of("kernel @double(%x: inout f32[4]) index s32 grid(%i: 4) {\n"
                "%a = load %x[%i] : f32\n%b = add %a, %a : f32\nstore %b, %x[%i] : f32\n}"),
      kernel_of(
          "kernel @zero(%x: out f32[4]) index s32 grid(%i: 4) {\nstore 0.0, %x[%i] : f32\n}")};
  Buffer flag = buffer(BufferKind::kTemporary, 0);
  flag.type = ElementType::kPred;
  flag.dims = {};
  p.buffers[1] = flag;
  p.sequences.resize(5);
  p.sequences[0].steps = {
      {Copy{2, 0}, {}, ""}, {While{1, 2, 1}, {}, ""}, {Conditional{1, {3, 4}}, {}, ""}};
  p.sequences[1].steps = {{Launch{0, {2, 1}, {}}, {}, ""}};
  p.sequences[2].steps = {{Launch{1, {2}, {}}, {}, ""}};
  p.sequences[3].steps = {{Launch{2, {2}, {}}, {}, ""}};
  find_dependencies(p);
  return p;
}

// A call of each kind on arrays of four floats, each with lowered steps.
inline void add_calls(Program& p) {
  const auto add = [&](const Dims& dims, ElementType type) {
    Buffer b = buffer(BufferKind::kTemporary, 0, p.temporary_bytes);
    b.dims = dims;
    b.type = type;
    p.temporary_bytes += (b.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    p.buffers.push_back(b);
    return static_cast<BufferId>(p.buffers.size() - 1);
  };
  const auto f32 = ElementType::kF32;
  const auto call = [&](LibraryCall what, std::vector<BufferId> from, std::vector<BufferId> to) {
    p.sequences.emplace_back();
    const auto lowered = static_cast<SequenceId>(p.sequences.size() - 1);
    for (const BufferId b : to) {
      if (p.buffer(b).type == f32 && p.buffer(b).dims == Dims{4}) {
        p.sequences[lowered].steps.push_back({Copy{b, 0}, {}, ""});
      }
    }
    p.sequences[0].steps.push_back(
        {LibraryCallStep{std::move(what), std::move(from), std::move(to), lowered}, {}, "library"});
  };
  const BufferId one = add({}, f32);
  const BufferId row = add({1, 4, 1}, f32);
  call(Contraction{{}, {}, {0}, {0}}, {0, 0}, {one});
  Convolution window;
  for (ConvolutionDims* dims : {&window.input, &window.kernel, &window.output}) {
    dims->feature = 2;
    dims->spatial = {1};
  }
  window.strides = window.input_dilation = window.kernel_dilation = {1};
  window.padding_low = {3};
  window.padding_high = window.reversed = {0};
  call(window, {row, row}, {add({1, 4, 1}, f32)});
  call(Sort{0, 0, true, true}, {0}, {add({4}, f32)});
  call(Scan{0, true, Combiner::kMaximum}, {0, one}, {add({4}, f32)});
  call(Fft{FftKind::kRealForward, {4}}, {0}, {add({3}, ElementType::kC64)});
  const BufferId state = add({2}, ElementType::kU64);
  call(Composite{"tenon.random_bits", 0, {{"algorithm", Dims{1}}}}, {state},
       {add({2}, ElementType::kU64), add({4}, ElementType::kU32)});
  call(Composite{"tenon.strided_copy", 0, {{"start", Dims{3}}, {"strides", Dims{-1}}}}, {0},
       {add({4}, f32)});
}

// One of each kind: control flow, a constant, a view, a donated parameter, a call with a
// configuration of each type, library calls.
inline Program everything() {
  Program p = control_flow();
  p.name = "everything";
  p.constants = {four(0.25)};
  p.buffers.push_back(buffer(BufferKind::kConstant, 0));
  const auto constant = static_cast<BufferId>(p.buffers.size() - 1);
  Buffer view = p.buffers[2];
  view.dims = {2, 2};
  view.view_of = 2;
  p.buffers.push_back(view);
  p.donated = {0};
  p.sequences[0].steps.push_back(
      {CustomCall{
           "mine",
           {{"flag", true}, {"number", int64_t{-7}}, {"real", 0.5}, {"text", std::string("t")}},
           {constant, 0},
           {constant + 1}},
       {},
       "call"});
  add_calls(p);
  find_dependencies(p);
  return p;
}

}  // namespace tenon::program::testing
