#include "conformance/cases/programs/models.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/interface/runtime_device.h"
#include "conformance/cases/programs/model_files.h"
#include "conformance/cases/text_program.h"
#include "conformance/compare/differential.h"
#include "hlo/import/import.h"
#include "hlo/passes/normalize/refine_shapes.h"
#include "hlo/verify/verify.h"

namespace tenon::conformance {
namespace {

using enum ElementType;

constexpr ModelSource kModels[] = {
    {"bf16_mlp", kBF16, "weights unit weights unit unit"},
    {"convnet", kF32, "weights unit weights unit weights unit unit"},
    // All values before the softmax are exact, so that each ReLU and maximum passes the same ones.
    {"convnet_grad", kF32,
     "steps:-8:8:16 steps:-8:8:16 steps:-8:8:16 steps:-8:8:16 steps:-4:4:32 steps:-8:8:16 "
     "steps:0:8:8 ints:0:9"},
    // Exact, so that equal logits are equal on every device.
    {"digits_inference", kF32,
     "steps:-8:8:32 steps:-8:8:16 steps:-8:8:32 steps:-8:8:16 steps:0:8:8"},
    {"dynamic", kF32, "unit weights unit", Comparison::kWhole, false, 5},
    {"dynamic", kF32, "unit weights unit", Comparison::kWhole, false, 1},
    {"fft", kC64, "unit"},
    {"int8_dot", kS8, "ints:-128:127", Comparison::kBits},
    {"linalg", kF32, "spd unit"},
    {"lstm", kF32, "weights weights unit", Comparison::kWhole, true},
    {"random", kU32, "ints:0:4294967295 unit"},
    {"solver", kF32, "spd unit", Comparison::kWhole, true},
    {"sort_topk", kF32, "steps:-8:8:4 ints:-20:19", Comparison::kBits},
    {"transformer_block", kF32,
     "unit ints:0:1 positive unit weights weights positive unit weights unit weights unit"},
};

// The biases keep every hidden unit on or off by far, since a gradient jumps where one is near 0.
constexpr ModelSource kTrainingSteps[] = {
    {"digits_train_step", kF32, "steps:-8:8:256 sign:1:2 steps:-8:8:256 unit steps:0:8:8 ints:0:9"},
};

// --- Programs

Result<std::unique_ptr<hlo::Module>> import_model(std::string_view sample) {
  const std::string path = fmt::format("{}/program.mlirbc", sample);
  const auto files = model_files();
  const auto file = std::ranges::find(files, path, &EmbeddedFile::path);
  if (file == files.end()) return not_found("the suite has no model {}", sample);
  return hlo::import_module(file->text, path);
}

// A parameter's shape, with the batch in place of the dimension that is open.
Shape shape_of(const hlo::Type& type, int64_t batch) {
  Dims dims = type.dims();
  for (int64_t& size : dims) {
    if (size < 0) size = batch;
  }
  return Shape(type.element_type(), std::move(dims));
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Result<CaseProgram> make_each_op(const ModelSource& model, uint64_t seed) {
  TENON_ASSIGN(CaseProgram made, make_model(model, seed));
  TENON_ASSIGN(made.module, with_all_values_returned(*made.module));
  made.comparison = Comparison::kEachOp;
  return made;
}

// --- Training

constexpr int kSteps = 3;

size_t state_size(const CaseProgram& program) {
  return program.module->entry()->return_instruction()->operand_count() - 1;
}

CaseResult harness_error(const Status& error) {
  CaseResult result;
  result.outcome = Outcome::kHarnessError;
  result.message = error.to_string();
  return result;
}

// Each step through the host.
CaseResult train_by_the_host(const ModelSource& model, CaseContext& context) {
  const auto program = make_model(model, context.seed);
  if (!program) return harness_error(program.error());
  program::StepCounts steps;
  std::string declined;
  const Status status =
      train(*program, [&](const std::vector<Literal>& arguments) -> Result<std::vector<Literal>> {
        TENON_ASSIGN(TargetRun run, context.target.run(*program->module, arguments));
        steps += run.steps;
        declined = declined_step(run.placement);
        return std::move(run.results);
      });
  CaseResult result = status.ok() ? CaseResult() : failed_run(status);
  result.steps = steps;
  return status.ok() ? with_steps_judged(std::move(result), context.target, declined) : result;
}

// The state stays on the device, and each step gets it to write the next one in its place.
CaseResult train_in_place(const ModelSource& model, CaseContext& context) {
  auto program = make_model(model, context.seed);
  if (!program) return harness_error(program.error());
  const size_t state = state_size(*program);
  hlo::Computation& main = *program->module->entry();
  main.parameter_attributes().resize(main.parameter_count());
  for (size_t i = 0; i < state; ++i) {
    const hlo::IntegerAttr number{static_cast<int64_t>(i), kS32};
    hlo::insert(main.parameter_attributes()[i], "tf.aliasing_output", hlo::Attribute(number));
  }
  return run_on_runtime(context, [&](RuntimeDevice& device) -> Status {
    TENON_ASSIGN(const auto executable, device.load(*program->module));
    std::vector<runtime::BufferPtr> held;
    for (const Literal& each : program->arguments) {
      TENON_ASSIGN(runtime::BufferPtr buffer, device.put(each));
      held.push_back(std::move(buffer));
    }
    return train(*program, [&](const std::vector<Literal>&) -> Result<std::vector<Literal>> {
      TENON_ASSIGN(const runtime::Execution run, device.execute(*executable, held));
      for (size_t i = 0; i < state; ++i) {
        if (!held[i]->is_deleted()) return internal_error("a donated argument is not deleted");
        held[i] = run.results[i];
      }
      return fetch(run.results);
    });
  });
}

// --- The list

void add_model(CaseList& list, const ModelSource& model) {
  const std::string prefix = fmt::format("model/{}/{}/", model.sample, name_of(model.type));
  const std::string batch = model.batch > 0 ? fmt::format("batch_{}_", model.batch) : "";
  ConformanceCase whole;
  whole.name = prefix + batch + "whole";
  whole.tier = Tier::kQuick;
  whole.run = [&model](CaseContext& context) {
    return run_program_case([&](ValueClass, uint64_t seed) { return make_model(model, seed); },
                            ValueClass::kOrdinary, context);
  };
  list.cases.push_back(std::move(whole));
  if (model.has_loops) return;
  ConformanceCase each_op;
  each_op.name = prefix + batch + "each_op";
  each_op.run = [&model](CaseContext& context) {
    return run_program_case([&](ValueClass, uint64_t seed) { return make_each_op(model, seed); },
                            ValueClass::kOrdinary, context);
  };
  list.cases.push_back(std::move(each_op));
}

}  // namespace

Result<CaseProgram> make_model(const ModelSource& model, uint64_t seed) {
  CaseProgram made;
  made.comparison = model.comparison;
  TENON_ASSIGN(made.module, import_model(model.sample));
  const std::vector<std::string_view> how = words_of(model.arguments);
  const hlo::Computation& main = *made.module->entry();
  Random random(seed);
  hlo::ArgumentKnowledge known;
  for (size_t i = 0; i < main.parameter_count(); ++i) {
    const Shape shape = shape_of(main.parameter(i).type(), model.batch);
    TENON_ASSIGN(Literal argument, fill_argument(how[std::min(i, how.size() - 1)], shape,
                                                 ValueClass::kOrdinary, random));
    made.arguments.push_back(std::move(argument));
    known.shapes.emplace(i, shape.dims());
  }
  if (model.batch > 0) {
    TENON_ASSIGN(made.module, hlo::refine(*made.module, known));
  }
  TENON_TRY(hlo::verify(*made.module));
  return made;
}

Status train(const CaseProgram& program, const TrainingStep& step) {
  std::vector<Literal> arguments = program.arguments;
  const size_t state = state_size(program);
  double loss = HUGE_VAL;
  for (int i = 1; i <= kSteps; ++i) {
    TENON_ASSIGN(std::vector<Literal> results, step(arguments));
    if (const auto wrong = compare_whole(*program.module, arguments, results))
      return internal_error("step {}: {}", i, wrong->text);
    const double now = results.back().get_double(0);
    if (!(now < loss))
      return internal_error("step {}: the loss is {:g}, and was {:g} before", i, now, loss);
    loss = now;
    std::move(results.begin(), results.begin() + static_cast<int64_t>(state), arguments.begin());
  }
  return {};
}

void add_model_cases(CaseList& list) {
  for (const ModelSource& model : kModels) add_model(list, model);
  for (const ModelSource& model : kTrainingSteps) {
    add_model(list, model);
    const std::string prefix = fmt::format("model/{}/{}/", model.sample, name_of(model.type));
    ConformanceCase by_host;
    by_host.name = prefix + "three_steps";
    by_host.run = [&model](CaseContext& context) { return train_by_the_host(model, context); };
    list.cases.push_back(std::move(by_host));
    ConformanceCase in_place;
    in_place.name = prefix + "three_steps_donated";
    in_place.needs = CaseNeeds::kInterface;
    in_place.run = [&model](CaseContext& context) { return train_in_place(model, context); };
    list.cases.push_back(std::move(in_place));
  }
}

}  // namespace tenon::conformance
