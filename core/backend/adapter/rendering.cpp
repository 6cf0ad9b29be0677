#include "core/backend/adapter/rendering.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <regex>

#include "core/base/lines.h"
#include "core/kernel/render/rendered_binary.h"

namespace tenon::backend {

RenderedKernels render_kernels(const TargetInfo& target, Kernels kernels,
                               kernel::RenderOptions options) {
  RenderedKernels result;
  options.rename = true;
  std::vector<kernel::Kernel> copies;
  for (const kernel::Kernel* each : kernels) copies.push_back(*each);
  auto rendered = kernel::render(copies, options);
  for (uint32_t k = 0; k < copies.size(); ++k) {
    const size_t parameters = copies[k].buffer_count + copies[k].scalars.size();
    if (target.most_parameters > 0 && static_cast<int64_t>(parameters) > target.most_parameters) {
      result.declined.push_back({k, Reason::kTooManyParameters, std::to_string(parameters)});
    } else if (!rendered) {
      const auto alone = kernel::render(std::span(&copies[k], 1), options);
      if (!alone) result.declined.push_back({k, Reason::kOther, alone.error().message()});
    }
  }
  if (rendered) {
    result.source = *std::move(rendered);
  } else if (result.declined.empty()) {  // Together they fail, and none alone.
    for (uint32_t k = 0; k < copies.size(); ++k) {
      result.declined.push_back({k, Reason::kOther, rendered.error().message()});
    }
  }
  return result;
}

void declare_rendering(TargetInfo& target) {
  constexpr int64_t kReductionBytes = 2 * sizeof(uint64_t);  // Of a lane.
  target.features.tiles = true;
  target.features.private_memory = true;
  target.features.dimensions = true;
  target.scratch_bytes =
      std::max<int64_t>(target.scratch_bytes - kReductionBytes * target.preferred_lanes, 0);
}

kernel::RenderOptions render_options(const TargetInfo& target, kernel::Language language) {
  kernel::RenderOptions options;
  options.language = language;
  options.lanes = target.preferred_lanes;
  options.fit_lanes = true;
  options.vector_bytes = target.vector_bytes;
  return options;
}

Result<Compiled> compile_rendered(const TargetInfo& target, Kernels kernels,
                                  const kernel::RenderOptions& options,
                                  const SourceCompiler& build) {
  RenderedKernels rendered = render_kernels(target, kernels, options);
  if (!rendered.declined.empty()) return Compiled{"", std::move(rendered.declined)};
  TENON_ASSIGN(std::string program, build(rendered.source.text));
  kernel::RenderedBinary binary{std::move(rendered.source.kernels), std::move(program)};
  return Compiled{binary.save(), {}};
}

std::vector<size_t> scalar_bytes(const kernel::Kernel& kernel) {
  std::vector<size_t> bytes;
  for (const kernel::ValueId scalar : kernel.scalars) {
    const int bits = bit_width(kernel.value(scalar).type);
    bytes.push_back(static_cast<size_t>(std::max(bits / 8, 1)));
  }
  return bytes;
}

std::string explain_messages(const std::string& messages, const std::string& source) {
  std::smatch match;
  const std::regex first_error("[:(](\\d+)(:\\d+|\\)): error: ([^\n]*)");
  if (!std::regex_search(messages, match, first_error)) return messages;
  const std::string digits = match[1].str();
  size_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const std::vector<std::string> lines = lines_of(source);
  if (number == 0 || number > lines.size()) return messages;
  // The renderer writes a kernel's op in front of it.
  size_t op = number - 1;
  while (op > 0 && !lines[op].starts_with("// ")) --op;
  const bool is_known = lines[op].starts_with("// ");
  return fmt::format("{} (line {}: \"{}\", of {})\n{}", match[3].str(), number, lines[number - 1],
                     is_known ? lines[op].substr(3) : "no op", messages);
}

}  // namespace tenon::backend
