// Memory of the runtime: donation, aliasing, large temporaries, memory used up and given back.
#include <algorithm>

#include "conformance/cases/interface/runtime_checks.h"
#include "core/base/random.h"

namespace tenon::conformance::runtime_checks {

using runtime::BufferPtr;
using enum ElementType;

Status donation_takes_the_buffer(RuntimeDevice& d) {
  TENON_ASSIGN(const auto executable, d.load(add_one(1000, kDonor)));
  const Literal x = test_numbers({1000}, 3);
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
  const Literal x = test_numbers({5000}, -9);
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
  const Literal x = test_numbers({1000}, 11);
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
  TENON_ASSIGN(const BufferPtr buffer, d.put(test_numbers({77}, 5)));
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
  const Literal x = test_numbers({512}, -1000);
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
  const Literal x = test_numbers({100000}, 1);
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
    one.contents = test_numbers({1 + random.below(20000)}, i);
    TENON_ASSIGN(one.buffer, d.put(one.contents));
    kept.push_back(std::move(one));
  }
  TENON_ASSIGN(const auto executable, d.load(add_one(999)));
  const Literal x = test_numbers({999}, 1);
  TENON_ASSIGN(const auto got, d.run(*executable, {x}));
  return same(got[0], plus(x, 1), "a result in fragmented memory");
}

}  // namespace tenon::conformance::runtime_checks
