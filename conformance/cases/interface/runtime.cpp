// Memory and runtime: executables and buffers through the runtime (core/runtime), as a framework
// uses a device: donation, aliasing, large temporaries, memory used up and given back, order,
// threads, many executables, transfers of any layout, errors of calls, use after donation.
#include <atomic>
#include <thread>

#include "conformance/cases/interface/runtime_checks.h"

namespace tenon::conformance {
namespace {

using namespace runtime_checks;  // NOLINT(google-build-using-namespace): the table names all of
                                 // them
using runtime::BufferPtr;
using runtime::Executable;
using runtime::MemoryKind;
using enum ElementType;

Status executions_in_order(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(3000)));
  const Literal x = test_numbers({3000}, 0);
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
        const Literal x = test_numbers({700}, 1000 * t + i);
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
  const Literal x = test_numbers({700}, 3);
  return d.run(*executable, {x}).has_value() ? Status() : internal_error("it does not run then");
}

Status many_executables(RuntimeDevice& d) {
  std::vector<std::shared_ptr<Executable>> loaded;
  for (int64_t i = 0; i < 30; ++i) {
    TENON_ASSIGN(auto executable, d.load(add_one(10 + i)));
    loaded.push_back(std::move(executable));
  }
  for (size_t i = loaded.size(); i-- > 0;) {
    const Literal x = test_numbers({static_cast<int64_t>(10 + i)}, 4);
    TENON_ASSIGN(const auto got, d.run(*loaded[i], {x}));
    TENON_TRY(same(got[0], plus(x, 1), "one of thirty executables"));
    if (i % 3 == 0) loaded.erase(loaded.begin() + static_cast<int64_t>(i));
  }
  return {};
}

Status wrong_arguments_are_errors(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(20)));
  TENON_ASSIGN(const BufferPtr shorter, d.put(test_numbers({19}, 0)));
  TENON_ASSIGN(const BufferPtr narrow, d.put(test_numbers({20}, 0, kS16)));
  if (d.execute(*executable, {})) return internal_error("no argument was accepted");
  if (d.execute(*executable, {shorter})) return internal_error("a shorter argument was accepted");
  if (d.execute(*executable, {narrow})) return internal_error("another type was accepted");
  const Literal x = test_numbers({20}, 8);
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
    Literal source = test_numbers({50000}, i);
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
    TENON_ASSIGN(const BufferPtr buffer, d.put(test_numbers({50000}, i)));
    TENON_ASSIGN(const auto run, d.execute(*executable, {buffer}));
    buffer->remove();
    results.push_back(run.results[0]);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    TENON_ASSIGN(const Literal got, results[i]->to_literal());
    TENON_TRY(same(got, plus(test_numbers({50000}, static_cast<int64_t>(i)), 1),
                   "a result whose argument was freed"));
  }
  return {};
}

Status executable_freed_while_used(RuntimeDevice& d) {
  BufferPtr result;
  const Literal x = test_numbers({50000}, 2);
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
  const Literal x = test_numbers({33}, 6);
  TENON_ASSIGN(const auto got, d.run(*executable, {x}));
  for (int i = 0; i < kResults; ++i)
    TENON_TRY(same(got[static_cast<size_t>(i)], plus(x, i), fmt::format("result {} of 40", i)));
  return {};
}

Status copies_between_memories(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(500)));
  const Literal x = test_numbers({500}, 9);
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
  const Literal x = test_numbers({4}, 1);
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
  bool alone = false;  // It leaves other processes no memory.
};
constexpr RuntimeCase kRuntimeCases[] = {
    {"memory/chain_of_donations", chain_of_donations},
    {"memory/donation_takes_the_buffer", donation_takes_the_buffer},
    {"memory/fragmentation", fragmentation},
    {"memory/held_buffers_stay", held_buffers_stay},
    {"memory/large_temporaries", large_temporaries},
    {"memory/one_buffer_twice", one_buffer_twice},
    {"memory/used_up_and_given_back", memory_used_up_and_given_back, /*alone=*/true},
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

}  // namespace

void add_runtime_cases(CaseList& list) {
  for (const RuntimeCase& each : kRuntimeCases) {
    ConformanceCase one;
    one.name = each.name;
    one.tier = Tier::kQuick;
    one.needs = CaseNeeds::kInterface;
    one.alone = each.alone;
    one.run = [check = each.check](CaseContext& context) { return run_on_runtime(context, check); };
    list.cases.push_back(std::move(one));
  }
}

}  // namespace tenon::conformance
