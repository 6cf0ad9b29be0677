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
  if (language == Language::kOpenCl) {
    form.converted.insert(ElementType::kF16);
  } else {
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

// The innermost capture of the thread.
thread_local RenderCapture* current_capture = nullptr;

// Whether code, outside of comments, has the word, which may be a part of a kernel's name too.
bool has_word(std::string_view code, std::string_view word) {
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (size_t at = code.find(word); at != std::string_view::npos; at = code.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !in_word(code[at - 1]);
    const bool ends = end == code.size() || !in_word(code[end]);
    const std::string_view line = code.substr(0, at).substr(code.rfind('\n', at) + 1);
    if (begins && ends && !line.starts_with("//")) return true;
  }
  return false;
}

}  // namespace

RenderCapture::RenderCapture() : outer_(current_capture) { current_capture = this; }
RenderCapture::~RenderCapture() { current_capture = outer_; }

void RenderCapture::add(const std::string& text) {
  if (std::ranges::find(texts_, text) == texts_.end()) texts_.push_back(text);
}

Result<RenderedSource> render(std::span<const Kernel> kernels, const RenderOptions& options) {
  const Spelling& spelling = spelling_of(options.language);
  RenderedSource rendered;
  std::set<std::string> helpers;
  NameTable taken;
  if (!options.table.empty()) taken.hold(options.table);
  FunctionNames functions;
  std::string text;
  for (const Kernel& kernel : kernels) {
    TENON_ASSIGN(const Kernel legal, legal_for_source(kernel, options.language));
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
    if (options.table.empty() && !options.rename && functions.back() != name) {
      return invalid_argument("two kernels of one source have the name @{}", kernel.name);
    }
    const WrittenSource written = write_source(legal, launched, options, functions.back(), helpers);
    text += "\n" + written.text;
    rendered.kernels.push_back({functions.back(), element_count(legal.grid), written.lanes});
  }
  if (!options.table.empty()) {
    FunctionNames entries;
    for (const std::string& function : functions)
      entries.push_back(taken.take(function + "_entry"));
    text += table_text(kernels, functions, entries, options.table);
  }
  text = helper_text(spelling, helpers) + text;
  // A target may have no f64 or no 64-bit integers at all, not even in an unused declaration.
  const bool f64 =
      has_word(text, type_text(ElementType::kF64)) || has_word(text, spelling.f64_from_bits);
  const bool s64 =
      has_word(text, type_text(ElementType::kS64)) || has_word(text, type_text(ElementType::kU64));
  const bool f16 = has_word(text, "tenon_half") || has_word(text, "tenon_of_half");
  rendered.text = fmt::format("{}{}{}{}\n{}", spelling.header, f16 ? spelling.header_f16 : "",
                              s64 ? spelling.header_s64 : "", f64 ? spelling.header_f64 : "", text);
  if (current_capture != nullptr) current_capture->add(rendered.text);
  return rendered;
}

}  // namespace tenon::kernel
