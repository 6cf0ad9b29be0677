#include "core/kernel/render/rendered_binary.h"

#include <fmt/format.h>

#include <charconv>

namespace tenon::kernel {
namespace {

// A positive number up to `end`, and nothing else.
bool parse_number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

bool parse_launch(std::string_view line, RenderedKernel& kernel) {
  const size_t first = line.find(' ');
  const size_t second = line.rfind(' ');
  if (first == 0 || first == std::string_view::npos || first == second) return false;
  kernel.function = line.substr(0, first);
  return parse_number(line.substr(first + 1, second - first - 1), kernel.workgroups) &&
         parse_number(line.substr(second + 1), kernel.lanes);
}

}  // namespace

std::string RenderedBinary::save() const {
  std::string text;
  for (const RenderedKernel& each : kernels) {
    text += fmt::format("{} {} {}\n", each.function, each.workgroups, each.lanes);
  }
  return text + "\n" + program;
}

Result<RenderedBinary> RenderedBinary::load(std::string_view bytes) {
  RenderedBinary binary;
  while (!bytes.starts_with('\n')) {
    const size_t end = bytes.find('\n');
    RenderedKernel kernel;
    if (end == std::string_view::npos || !parse_launch(bytes.substr(0, end), kernel)) {
      return make_error(ErrorCode::kDataLoss,
                        "the binary does not say how its kernels are launched");
    }
    binary.kernels.push_back(std::move(kernel));
    bytes.remove_prefix(end + 1);
  }
  binary.program = bytes.substr(1);
  return binary;
}

}  // namespace tenon::kernel
