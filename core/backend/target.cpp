#include "core/backend/target.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "core/kernel/ir/ops.h"

namespace tenon::backend {

Status check(const TargetInfo& target) {
  const auto bad = [&](std::string what) {
    return Status(failed_precondition("the target '{}' is invalid: {}", target.name, what));
  };
  if (target.name.empty()) return bad("it has no name");
  if (target.compiler_id.empty()) return bad("it has no compiler_id");
  if (target.spaces.empty()) return bad("it has no memory space");
  if (target.queues < 1) return bad("it has no queue");
  for (const SpaceInfo& space : target.spaces) {
    if (space.alignment < 1 || !std::has_single_bit(static_cast<uint64_t>(space.alignment))) {
      return bad(fmt::format("an alignment of {} is not a power of two", space.alignment));
    }
  }
  if (!target.spaces[0].reachable) return bad("kernels do not reach spaces[0]");
  for (const double figure : {target.flops, target.bytes_per_second, target.launch_seconds}) {
    if (!std::isfinite(figure) || figure < 0) return bad("a cost is negative or not a number");
  }
  for (const int64_t number : {target.compute_units, target.preferred_lanes, target.most_lanes,
                               target.vector_bytes, target.scratch_bytes, target.private_bytes,
                               target.most_parameters, target.largest_buffer}) {
    if (number < 0) return bad(fmt::format("{} is negative", number));
  }
  for (const MathInfo& math : target.math) {
    const auto op = kernel::op_from_name(math.function);
    if (!op || !kernel::is_math(*op))
      return bad(fmt::format("there is no math function '{}'", math.function));
  }
  return {};
}

std::string to_string(const TargetInfo& target) {
  std::string text = fmt::format("name {}\ncompiler {}\n", target.name, target.compiler_id);
  const auto types = [](const kernel::ElementTypes& set) {
    std::vector<std::string_view> names;
    for (size_t i = 0; i < kElementTypeCount; ++i) {
      const auto type = static_cast<ElementType>(i);
      if (set.contains(type)) names.push_back(tenon::name_of(type));
    }
    return fmt::format("{}", fmt::join(names, " "));
  };
  const auto line = [&](std::string_view name, const auto& value, const auto& usual) {
    if (value != usual) text += fmt::format("{} {}\n", name, value);
  };
  const TargetInfo usual;
  text += fmt::format("types {}\n", types(target.features.computed));
  line("converts", types(target.features.converted), std::string());
  line("atomics", types(target.features.atomics), std::string());
  line("flushed", types(target.flushed), std::string());
  std::vector<std::string_view> forms;
  const auto form = [&](bool has, std::string_view name) {
    if (has) forms.push_back(name);
  };
  form(target.accepts_all, "as_written");
  form(target.features.fma, "fma");
  form(target.features.tiles, "tiles");
  form(target.features.scans, "scans");
  form(target.features.private_memory, "private_memory");
  form(target.features.dimensions, "dimensions");
  form(target.features.math, "math");
  text += fmt::format("forms {}\n", fmt::join(forms, " "));
  for (const MathInfo& math : target.math) {
    text += fmt::format("math {} {} {} ulp\n", math.function, tenon::name_of(math.type), math.ulp);
  }
  line("compute_units", target.compute_units, usual.compute_units);
  line("preferred_lanes", target.preferred_lanes, usual.preferred_lanes);
  line("most_lanes", target.most_lanes, usual.most_lanes);
  line("vector_bytes", target.vector_bytes, usual.vector_bytes);
  line("scratch_bytes", target.scratch_bytes, usual.scratch_bytes);
  line("private_bytes", target.private_bytes, usual.private_bytes);
  line("most_parameters", target.most_parameters, usual.most_parameters);
  line("largest_buffer", target.largest_buffer, usual.largest_buffer);
  for (const SpaceInfo& space : target.spaces) {
    text += fmt::format("space {}{}{} {} bytes, aligned to {}\n",
                        space.kind == SpaceKind::kDevice ? "device" : "pinned_host",
                        space.reachable ? "" : ", out of kernels' reach",
                        space.host_visible ? ", host-visible" : "", space.bytes, space.alignment);
  }
  line("queues", target.queues, usual.queues);
  line("flops", target.flops, usual.flops);
  line("bytes_per_second", target.bytes_per_second, usual.bytes_per_second);
  line("launch_seconds", target.launch_seconds, usual.launch_seconds);
  for (const TuningValue& each : target.tuning) {
    text += fmt::format("tuning {} = {}\n", each.name, each.value);
  }
  return text;
}

Result<std::vector<TuningValue>> parse_tuning(std::string_view text) {
  std::vector<TuningValue> values;
  const auto trimmed = [](std::string_view part) {
    const size_t first = part.find_first_not_of(" \t\r");
    const size_t last = part.find_last_not_of(" \t\r");
    return first == std::string_view::npos ? std::string_view()
                                           : part.substr(first, last - first + 1);
  };
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line =
        trimmed(text.substr(0, end).substr(0, text.substr(0, end).find('#')));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    TuningValue value;
    value.name = trimmed(line.substr(0, equals));
    const std::string_view digits =
        equals == std::string_view::npos ? std::string_view() : trimmed(line.substr(equals + 1));
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value.value);
    if (value.name.empty() || digits.empty() || error != std::errc() ||
        rest != digits.data() + digits.size()) {
      return invalid_argument("line {}: '{}' is not of the form NAME = NUMBER", number, line);
    }
    values.push_back(std::move(value));
  }
  return values;
}

std::string to_string(const std::vector<TuningValue>& tuning) {
  std::string text;
  for (const TuningValue& each : tuning) text += fmt::format("{} = {}\n", each.name, each.value);
  return text;
}

}  // namespace tenon::backend
