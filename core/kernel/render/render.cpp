#include "core/kernel/render/render.h"

#include <algorithm>
#include <cctype>

#include "core/kernel/render/names.h"
#include "core/kernel/render/source_writer.h"
#include "core/kernel/render/spelling.h"

namespace tenon::kernel {

TargetFeatures source_form(Language language) {
  TargetFeatures form;
  for (const ElementType type :
       {ElementType::kS8, ElementType::kS16, ElementType::kS64, ElementType::kU8, ElementType::kU16,
        ElementType::kU64, ElementType::kF64}) {
    form.computed.insert(type);
  }
  form.dimensions = false;
  form.atomics = {ElementType::kS32, ElementType::kU32};
  // In C a call runs everything serially; OpenCL C has atomics on 32 bits only.
  if (language != Language::kOpenCl) {
    form.atomics.insert(ElementType::kS64);
    form.atomics.insert(ElementType::kU64);
  }
  return form;
}

namespace {

using FunctionNames = std::vector<std::string>;

// A function of one signature for each kernel, and their table.
std::string table_text(std::span<const Kernel> kernels, const FunctionNames& functions,
                       const FunctionNames& entries, const std::string& table) {
  std::string text;
  for (size_t k = 0; k < kernels.size(); ++k) {
    FunctionNames arguments;
    for (size_t b = 0; b < kernels[k].buffer_count; ++b) {
      arguments.push_back(fmt::format("buffers[{}]", b));
    }
    for (size_t s = 0; s < kernels[k].scalars.size(); ++s) {
      const ElementType type = kernels[k].value(kernels[k].scalars[s]).type;
      // An integer that holds the bits; for a float it is reinterpreted.
      arguments.push_back(is_float(type)
                              ? fmt::format("*(const {}*)&scalars[{}]", type_text(type), s)
                              : fmt::format("({})scalars[{}]", type_text(type), s));
    }
    text += fmt::format(
        "\nstatic void {}(void *const *buffers, const uint64_t *scalars) {{\n  (void)buffers;\n  "
        "(void)scalars;\n  {}({});\n}}\n",
        entries[k], functions[k], fmt::join(arguments, ", "));
  }
  return fmt::format(
      "{}\nvoid (*const {}[])(void *const *buffers, const uint64_t *scalars) = {{{}}};\n", text,
      table, fmt::join(entries, ", "));
}

}  // namespace

Result<std::string> render(std::span<const Kernel> kernels, const RenderOptions& options) {
  const Spelling& spelling = spelling_of(options.language);
  std::set<std::string> helpers;
  NameTable taken;
  if (!options.table.empty()) taken.hold(options.table);
  FunctionNames functions;
  std::string text;
  for (const Kernel& kernel : kernels) {
    TENON_ASSIGN(const Kernel legal, legalize(kernel, source_form(options.language)));
    const int64_t launched = element_count(kernel.grid);
    if (spelling.has_lanes() && launched >= INT32_MAX) {
      return unimplemented("@{}: a grid of {} workgroups", kernel.name, launched);
    }
    if (spelling.has_lanes() && element_count(legal.grid) > launched && launched > 0) {
      return internal_error("@{}: the legal form takes {} workgroups, {} are launched", kernel.name,
                            element_count(legal.grid), launched);
    }
    const std::string name = source_name(kernel.name);
    functions.push_back(name);
    for (int i = 2; !taken.hold(functions.back()); ++i)
      functions.back() = fmt::format("{}_{}", name, i);
    // Functions behind a table are not called by name.
    if (options.table.empty() && functions.back() != name) {
      return invalid_argument("two kernels of one source have the name @{}", kernel.name);
    }
    text += "\n" + write_source(legal, launched, options, functions.back(), helpers).text;
  }
  if (!options.table.empty()) {
    FunctionNames entries;
    for (const std::string& function : functions)
      entries.push_back(taken.take(function + "_entry"));
    text += table_text(kernels, functions, entries, options.table);
  }
  text = helper_text(spelling, helpers) + text;
  // A target may have no f64 at all, not even in an unused function.
  const bool wide = text.find(type_text(ElementType::kF64)) != std::string::npos ||
                    text.find(spelling.f64_from_bits) != std::string::npos;
  return fmt::format("{}{}\n{}", spelling.header, wide ? spelling.header_f64 : "", text);
}

}  // namespace tenon::kernel
