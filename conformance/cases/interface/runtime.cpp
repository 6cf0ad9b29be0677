// Memory and runtime: executables and buffers through the runtime (core/runtime), as a framework
// uses a device: donation, aliasing, large temporaries, memory used up and given back, order,
// threads, many executables, transfers of any layout, errors of calls, use after donation.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "conformance/cases/program_maker.h"
#include "core/base/random.h"
#include "core/types/float_convert.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

namespace tenon::conformance {
namespace {

using runtime::BufferPtr;
using runtime::Client;
using runtime::Executable;
using runtime::MemoryKind;
using enum ElementType;

// A client of the released device, and the steps that its executions ran.
class RuntimeDevice {
 public:
  static Result<RuntimeDevice> open(const BackendDevice& source) {
    RuntimeDevice opened;
    runtime::ClientOptions one;
    one.devices = {source.index};
    TENON_ASSIGN(opened.client_, Client::open(source.backend, one));
    return opened;
  }

  const std::shared_ptr<runtime::Device>& device() const { return client_->devices()[0]; }
  const backend::TargetInfo& target() const { return device()->info().target; }

  Result<std::shared_ptr<Executable>> load(const std::string& text) const {
    TENON_ASSIGN(const auto module, hlo::import_module(text, "case"));
    TENON_ASSIGN(auto made, hlo::compile(*module, client_->backend(), target()));
    return Executable::load(device(), std::move(made.compiled), {});
  }

  Result<BufferPtr> put(const Literal& array, MemoryKind kind = MemoryKind::kDevice) const {
    TENON_ASSIGN(auto made,
                 buffer_from_host(device(), kind, {array.data().data(), array.shape(), {}, {}}));
    return made.buffer;
  }

  Result<runtime::Execution> execute(const Executable& executable,
                                     std::vector<BufferPtr> arguments) {
    TENON_ASSIGN(runtime::Execution run, executable.execute(arguments));
    executions_.push_back(run);
    return run;
  }

  /// Runs on these arrays, and waits.
  Result<std::vector<Literal>> run(const Executable& executable,
                                   const std::vector<Literal>& arguments) {
    std::vector<BufferPtr> buffers;
    for (const Literal& each : arguments) {
      TENON_ASSIGN(BufferPtr buffer, put(each));
      buffers.push_back(std::move(buffer));
    }
    TENON_ASSIGN(const runtime::Execution done, execute(executable, buffers));
    std::vector<Literal> results;
    for (const BufferPtr& each : done.results) {
      TENON_ASSIGN(Literal array, each->to_literal());
      results.push_back(std::move(array));
    }
    return results;
  }

  program::StepCounts steps() const {
    program::StepCounts sum;
    for (const runtime::Execution& each : executions_) {
      if (!each.done.await().ok()) continue;
      sum.kernels += each.steps->kernels;
      sum.calls += each.steps->calls;
      sum.host += each.steps->host;
    }
    return sum;
  }

 private:
  std::shared_ptr<Client> client_;
  std::vector<runtime::Execution> executions_;
};

Literal numbers(Dims dims, int64_t first, ElementType type = kS32) {
  Literal array(Shape(type, std::move(dims)));
  for (int64_t i = 0; i < array.element_count(); ++i)
    array.set_integer(i, wrap_integer(type, first + 7 * i));
  return array;
}

Literal plus(const Literal& x, int64_t added) {
  Literal sum = x;
  for (int64_t i = 0; i < x.element_count(); ++i)
    sum.set_integer(i, wrap_integer(x.element_type(), x.get_integer(i) + added));
  return sum;
}

// `donor` is an attribute of the argument: " {tf.aliasing_output = 0 : i32}".
std::string add_one(int64_t count, std::string_view donor = "") {
  return fmt::format(
      "func.func @main(%a: tensor<{0}xi32>{1}) -> tensor<{0}xi32> {{\n"
      " %k = stablehlo.constant dense<1> : tensor<{0}xi32>\n"
      " %r = stablehlo.add %a, %k : tensor<{0}xi32>\n return %r : tensor<{0}xi32>\n}}\n",
      count, donor);
}
constexpr std::string_view kDonor = " {tf.aliasing_output = 0 : i32}";

Status same(const Literal& got, const Literal& expected, std::string_view what) {
  if (got == expected) return {};
  for (int64_t i = 0; i < got.element_count(); ++i) {
    if (got.get_integer(i) != expected.get_integer(i)) {
      return internal_error("{}: element {} is {}, expected {}", what, i, got.element_to_string(i),
                            expected.element_to_string(i));
    }
  }
  return internal_error("{}: another shape", what);
}

// --- Memory

Status donation_takes_the_buffer(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(1000, kDonor)));
  const Literal x = numbers({1000}, 3);
  TENON_ASSIGN(const BufferPtr buffer, d.put(x));
  TENON_ASSIGN(const auto run, d.execute(*executable, {buffer}));
  if (!buffer->is_deleted()) return internal_error("a donated argument is not deleted");
  const auto again = d.execute(*executable, {buffer});
  if (again) return internal_error("a deleted argument was accepted");
  TENON_ASSIGN(const Literal got, run.results[0]->to_literal());
  return same(got, plus(x, 1), "the result in donated memory");
}

Status chain_of_donations(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(5000, kDonor)));
  const Literal x = numbers({5000}, -9);
  TENON_ASSIGN(BufferPtr buffer, d.put(x));
  for (int i = 0; i < 50; ++i) {
    TENON_ASSIGN(const auto run, d.execute(*executable, {buffer}));
    buffer = run.results[0];
  }
  TENON_ASSIGN(const Literal got, buffer->to_literal());
  return same(got, plus(x, 50), "fifty donations in a row");
}

Status held_buffers_stay(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(1000, kDonor)));
  const Literal x = numbers({1000}, 11);
  TENON_ASSIGN(const BufferPtr buffer, d.put(x));
  TENON_TRY(buffer->hold());
  runtime::ExecuteOptions keep;
  keep.keep = {0};
  const BufferPtr arguments[] = {buffer};
  TENON_ASSIGN(const auto run, executable->execute(arguments, keep));
  TENON_ASSIGN(const Literal got, run.results[0]->to_literal());
  TENON_TRY(same(got, plus(x, 1), "the result beside a held argument"));
  TENON_ASSIGN(const Literal kept, buffer->to_literal());
  buffer->release();
  TENON_TRY(same(kept, x, "a held argument"));
  return d.execute(*executable, {buffer}).has_value() ? Status()
                                                      : internal_error("it cannot be donated then");
}

Status one_buffer_twice(RuntimeDevice& d) {
  TENON_ASSIGN(
      const auto executable,
      d.load("func.func @main(%a: tensor<77xi32>, %b: tensor<77xi32>) -> tensor<77xi32> {\n"
             " %r = stablehlo.subtract %a, %b : tensor<77xi32>\n"
             " return %r : tensor<77xi32>\n}\n"));
  TENON_ASSIGN(const BufferPtr buffer, d.put(numbers({77}, 5)));
  TENON_ASSIGN(const auto run, d.execute(*executable, {buffer, buffer}));
  TENON_ASSIGN(const Literal got, run.results[0]->to_literal());
  return same(got, Literal(Shape(kS32, {77})), "x - x");
}

// Temporaries of several times the size of the result.
Status large_temporaries(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(R"(
func.func @main(%a: tensor<512xi32>) -> tensor<512xi32> {
 %x = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<512xi32>) -> tensor<512x512xi32>
 %y = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<512xi32>) -> tensor<512x512xi32>
 %m = stablehlo.multiply %x, %y : tensor<512x512xi32>
 %t = stablehlo.transpose %m, dims = [1, 0] : (tensor<512x512xi32>) -> tensor<512x512xi32>
 %s = "stablehlo.sort"(%t) ({
  ^bb0(%u: tensor<i32>, %v: tensor<i32>):
   %p = stablehlo.compare LT, %u, %v : (tensor<i32>, tensor<i32>) -> tensor<i1>
   stablehlo.return %p : tensor<i1>
 }) {dimension = 1 : i64, is_stable = true} : (tensor<512x512xi32>) -> tensor<512x512xi32>
 %z = stablehlo.constant dense<-2147483648> : tensor<i32>
 %r = stablehlo.reduce(%s init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<512x512xi32>, tensor<i32>) -> tensor<512xi32>
 return %r : tensor<512xi32>
}
)"));
  const Literal x = numbers({512}, -1000);
  TENON_ASSIGN(const auto got, d.run(*executable, {x}));
  Literal expected(Shape(kS32, {512}));
  for (int64_t i = 0; i < 512; ++i) {
    int64_t most = integer_min(kS32);
    for (int64_t j = 0; j < 512; ++j)
      most = std::max(most, wrap_integer(kS32, x.get_integer(i) * x.get_integer(j)));
    expected.set_integer(i, most);
  }
  return same(got[0], expected, "a result behind large temporaries");
}

// Buffers until the device has no room, at most 1 GiB: then an error, and everything works again.
Status memory_used_up_and_given_back(RuntimeDevice& d) {
  constexpr int64_t kBlock = int64_t{16} << 20;
  constexpr int64_t kMost = 64;
  const Literal block(Shape(kU8, {kBlock}));
  std::vector<BufferPtr> buffers;
  for (int64_t i = 0; i < kMost; ++i) {
    auto buffer = d.put(block);
    if (!buffer) {
      if (buffer.error().code() != ErrorCode::kResourceExhausted) return buffer.error();
      break;
    }
    buffers.push_back(*std::move(buffer));
  }
  buffers.clear();
  TENON_ASSIGN(const auto executable, d.load(add_one(100000)));
  const Literal x = numbers({100000}, 1);
  TENON_ASSIGN(const auto got, d.run(*executable, {x}));
  return same(got[0], plus(x, 1), "a result after the memory was given back");
}

// Buffers of many sizes, freed in another order, with their contents checked.
Status fragmentation(RuntimeDevice& d) {
  Random random(5);
  struct KeptBuffer {
    BufferPtr buffer;
    Literal contents;
  };
  std::vector<KeptBuffer> kept;
  for (int i = 0; i < 300; ++i) {
    if (kept.size() > 20 || (!kept.empty() && random.one_in(3))) {
      const auto which = static_cast<size_t>(random.below(std::ssize(kept)));
      TENON_ASSIGN(const Literal got, kept[which].buffer->to_literal());
      TENON_TRY(same(got, kept[which].contents, "a buffer among others"));
      kept.erase(kept.begin() + static_cast<int64_t>(which));
    }
    KeptBuffer one;
    one.contents = numbers({1 + random.below(20000)}, i);
    TENON_ASSIGN(one.buffer, d.put(one.contents));
    kept.push_back(std::move(one));
  }
  TENON_ASSIGN(const auto executable, d.load(add_one(999)));
  const Literal x = numbers({999}, 1);
  TENON_ASSIGN(const auto got, d.run(*executable, {x}));
  return same(got[0], plus(x, 1), "a result in fragmented memory");
}

// --- Runtime

Status executions_in_order(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(3000)));
  const Literal x = numbers({3000}, 0);
  TENON_ASSIGN(BufferPtr buffer, d.put(x));
  std::vector<BufferPtr> each;
  for (int i = 0; i < 40; ++i) {
    TENON_ASSIGN(const auto run, d.execute(*executable, {buffer}));
    buffer = run.results[0];
    each.push_back(buffer);
  }
  for (size_t i = each.size(); i-- > 0;) {
    TENON_ASSIGN(const Literal got, each[i]->to_literal());
    TENON_TRY(same(got, plus(x, static_cast<int64_t>(i) + 1), "one of forty executions"));
  }
  return {};
}

Status threads_share_an_executable(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(700)));
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 15; ++i) {
        const Literal x = numbers({700}, 1000 * t + i);
        const auto buffer = d.put(x);
        if (!buffer) {
          ++failed;
          continue;
        }
        const BufferPtr arguments[] = {*buffer};
        const auto run = executable->execute(arguments);
        const auto got = run ? run->results[0]->to_literal() : Result<Literal>(Error(run.error()));
        if (!got || !same(*got, plus(x, 1), "").ok()) ++failed;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  if (failed != 0)
    return internal_error("{} of 60 executions from four threads failed", failed.load());
  const Literal x = numbers({700}, 3);
  return d.run(*executable, {x}).has_value() ? Status() : internal_error("it does not run then");
}

Status many_executables(RuntimeDevice& d) {
  std::vector<std::shared_ptr<Executable>> loaded;
  for (int64_t i = 0; i < 30; ++i) {
    TENON_ASSIGN(auto executable, d.load(add_one(10 + i)));
    loaded.push_back(std::move(executable));
  }
  for (size_t i = loaded.size(); i-- > 0;) {
    const Literal x = numbers({static_cast<int64_t>(10 + i)}, 4);
    TENON_ASSIGN(const auto got, d.run(*loaded[i], {x}));
    TENON_TRY(same(got[0], plus(x, 1), "one of thirty executables"));
    if (i % 3 == 0) loaded.erase(loaded.begin() + static_cast<int64_t>(i));
  }
  return {};
}

Status wrong_arguments_are_errors(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(20)));
  TENON_ASSIGN(const BufferPtr shorter, d.put(numbers({19}, 0)));
  TENON_ASSIGN(const BufferPtr narrow, d.put(numbers({20}, 0, kS16)));
  if (d.execute(*executable, {})) return internal_error("no argument was accepted");
  if (d.execute(*executable, {shorter})) return internal_error("a shorter argument was accepted");
  if (d.execute(*executable, {narrow})) return internal_error("another type was accepted");
  const Literal x = numbers({20}, 8);
  TENON_ASSIGN(const auto got, d.run(*executable, {x}));
  return same(got[0], plus(x, 1), "a result after refused calls");
}

Status transfers_of_any_strides(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable,
               d.load("func.func @main(%a: tensor<5x7xi16>) -> tensor<5x7xi16> {\n"
                      " %r = stablehlo.negate %a : tensor<5x7xi16>\n return %r : tensor<5x7xi16>\n"
                      "}\n"));
  std::vector<int16_t> host(600);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int16_t>(3 * i - 700);
  // Rows and columns in turn, backwards, every other, one element for all.
  const Dims strides[] = {{14, 2}, {2, 10}, {-40, 4}, {0, 2}, {60, -6}};
  for (const Dims& each : strides) {
    Literal expected(Shape(kS16, {5, 7}));
    const int64_t start = 300;
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 7; ++j) {
        const auto at = static_cast<size_t>(start + (i * each[0] + j * each[1]) / 2);
        expected.set_integer(i * 7 + j, -host[at]);
      }
    }
    runtime::HostArray array;
    array.data = reinterpret_cast<const std::byte*>(host.data() + start);
    array.shape = Shape(kS16, {5, 7});
    array.byte_strides = each;
    TENON_ASSIGN(const auto from, buffer_from_host(d.device(), MemoryKind::kDevice, array));
    TENON_ASSIGN(const auto run, d.execute(*executable, {from.buffer}));
    TENON_ASSIGN(const Literal got, run.results[0]->to_literal());
    TENON_TRY(same(got, expected, fmt::format("strides {} and {}", each[0], each[1])));
  }
  return {};
}

Status source_may_change_after_the_call(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(50000)));
  for (int i = 0; i < 5; ++i) {
    Literal source = numbers({50000}, i);
    const Literal sent = source;
    TENON_ASSIGN(const BufferPtr buffer, d.put(source));
    std::memset(source.mutable_data().data(), 0x77, source.mutable_data().size());
    TENON_ASSIGN(const auto run, d.execute(*executable, {buffer}));
    TENON_ASSIGN(const Literal got, run.results[0]->to_literal());
    TENON_TRY(same(got, plus(sent, 1), "an array that changed after the call"));
  }
  return {};
}

Status argument_freed_while_used(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(50000)));
  std::vector<BufferPtr> results;
  for (int i = 0; i < 20; ++i) {
    TENON_ASSIGN(const BufferPtr buffer, d.put(numbers({50000}, i)));
    TENON_ASSIGN(const auto run, d.execute(*executable, {buffer}));
    buffer->remove();
    results.push_back(run.results[0]);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    TENON_ASSIGN(const Literal got, results[i]->to_literal());
    TENON_TRY(same(got, plus(numbers({50000}, static_cast<int64_t>(i)), 1),
                   "a result whose argument was freed"));
  }
  return {};
}

Status executable_freed_while_used(RuntimeDevice& d) {
  BufferPtr result;
  const Literal x = numbers({50000}, 2);
  {
    TENON_ASSIGN(const auto executable, d.load(add_one(50000)));
    TENON_ASSIGN(const BufferPtr buffer, d.put(x));
    TENON_ASSIGN(const auto run, d.execute(*executable, {buffer}));
    result = run.results[0];
  }
  TENON_ASSIGN(const Literal got, result->to_literal());
  return same(got, plus(x, 1), "a result whose executable was freed");
}

Status many_results(RuntimeDevice& d) {
  std::string text = "func.func @main(%a: tensor<33xi32>) -> (";
  std::string body;
  std::string names;
  std::string types;
  constexpr int kResults = 40;
  for (int i = 0; i < kResults; ++i) {
    body += fmt::format(
        " %k{0} = stablehlo.constant dense<{0}> : tensor<33xi32>\n"
        " %r{0} = stablehlo.add %a, %k{0} : tensor<33xi32>\n",
        i);
    names += fmt::format("{}%r{}", i == 0 ? "" : ", ", i);
    types += fmt::format("{}tensor<33xi32>", i == 0 ? "" : ", ");
  }
  text += types + ") {\n" + body + " return " + names + " : " + types + "\n}\n";
  TENON_ASSIGN(const auto executable, d.load(text));
  const Literal x = numbers({33}, 6);
  TENON_ASSIGN(const auto got, d.run(*executable, {x}));
  for (int i = 0; i < kResults; ++i)
    TENON_TRY(same(got[static_cast<size_t>(i)], plus(x, i), fmt::format("result {} of 40", i)));
  return {};
}

Status copies_between_memories(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(500)));
  const Literal x = numbers({500}, 9);
  TENON_ASSIGN(const BufferPtr pinned, d.put(x, MemoryKind::kPinnedHost));
  TENON_ASSIGN(const BufferPtr moved, pinned->copy_to(d.device(), MemoryKind::kDevice));
  TENON_ASSIGN(const auto run, d.execute(*executable, {moved}));
  TENON_ASSIGN(const BufferPtr back, run.results[0]->copy_to(d.device(), MemoryKind::kPinnedHost));
  TENON_ASSIGN(const Literal got, back->to_literal());
  return same(got, plus(x, 1), "an array through pinned memory");
}

Status empty_arrays(RuntimeDevice& d) {
  TENON_ASSIGN(
      const auto executable,
      d.load("func.func @main(%a: tensor<0x3xi32>, %b: tensor<4xi32>) -> (tensor<0x3xi32>, "
             "tensor<4xi32>) {\n %r = stablehlo.negate %a : tensor<0x3xi32>\n"
             " %s = stablehlo.negate %b : tensor<4xi32>\n"
             " return %r, %s : tensor<0x3xi32>, tensor<4xi32>\n}\n"));
  const Literal x = numbers({4}, 1);
  TENON_ASSIGN(const auto got, d.run(*executable, {Literal(Shape(kS32, {0, 3})), x}));
  Literal expected(Shape(kS32, {4}));
  for (int64_t i = 0; i < 4; ++i) expected.set_integer(i, -x.get_integer(i));
  if (got[0].shape().dims() != Dims{0, 3})
    return internal_error("an empty result has another shape");
  return same(got[1], expected, "the result beside an empty one");
}

using RuntimeCheck = Status (*)(RuntimeDevice& device);
struct RuntimeCase {
  const char* name;
  RuntimeCheck check;
};
constexpr RuntimeCase kRuntimeCases[] = {
    {"memory/chain_of_donations", chain_of_donations},
    {"memory/donation_takes_the_buffer", donation_takes_the_buffer},
    {"memory/fragmentation", fragmentation},
    {"memory/held_buffers_stay", held_buffers_stay},
    {"memory/large_temporaries", large_temporaries},
    {"memory/one_buffer_twice", one_buffer_twice},
    {"memory/used_up_and_given_back", memory_used_up_and_given_back},
    {"runtime/argument_freed_while_used", argument_freed_while_used},
    {"runtime/copies_between_memories", copies_between_memories},
    {"runtime/empty_arrays", empty_arrays},
    {"runtime/executable_freed_while_used", executable_freed_while_used},
    {"runtime/executions_in_order", executions_in_order},
    {"runtime/many_executables", many_executables},
    {"runtime/many_results", many_results},
    {"runtime/source_may_change_after_the_call", source_may_change_after_the_call},
    {"runtime/threads_share_an_executable", threads_share_an_executable},
    {"runtime/transfers_of_any_strides", transfers_of_any_strides},
    {"runtime/wrong_arguments_are_errors", wrong_arguments_are_errors},
};

CaseResult run_runtime_case(RuntimeCheck check, CaseContext& context) {
  const auto released = context.target.release_device();
  if (!released) return failed_run(released.error());
  CaseResult result;
  {
    auto device = RuntimeDevice::open(*released);
    if (!device) return failed_run(device.error());
    const Status status = check(*device);
    if (!status.ok()) {
      result = failed_run(status);
      result.blame = Blame::kInterface;
    }
    result.steps = device->steps();
  }
  // The client's device is closed on another thread.
  if (const auto closed = context.target.release_device(); !closed)
    return failed_run(closed.error());
  return result.outcome == Outcome::kPass ? with_steps_judged(std::move(result), context.target)
                                          : result;
}

}  // namespace

void add_runtime_cases(CaseList& list) {
  for (const RuntimeCase& each : kRuntimeCases) {
    ConformanceCase one;
    one.name = each.name;
    one.tier = Tier::kQuick;
    one.needs = CaseNeeds::kInterface;
    one.run = [check = each.check](CaseContext& context) {
      return run_runtime_case(check, context);
    };
    list.cases.push_back(std::move(one));
  }
}

}  // namespace tenon::conformance
