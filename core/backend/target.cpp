#include "core/backend/target.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <set>

#include "core/kernel/ir/ops.h"

namespace tenon::backend {

Status check(const TargetInfo& target) {
  const auto bad = [&](std::string what) {
    return Status(failed_precondition("the target '{}' is invalid: {}", target.name, what));
  };
  if (target.name.empty()) return bad("it has no name");
  if (target.compiler_id.empty()) return bad("it has no compiler_id");
  // Each is a line of the target's text.
  if ((target.name + target.compiler_id).find_first_of("\r\n") != std::string::npos) {
    return bad("its name or compiler_id has several lines");
  }
  if (target.spaces.empty()) return bad("it has no memory space");
  if (target.queues < 1) return bad("it has no queue");
  for (const SpaceInfo& space : target.spaces) {
    if (space.bytes < 0) return bad(fmt::format("{} bytes of memory", space.bytes));
    if (space.alignment < 1 || !std::has_single_bit(static_cast<uint64_t>(space.alignment))) {
      return bad(fmt::format("an alignment of {} is not a power of two", space.alignment));
    }
  }
  if (!target.spaces[0].reachable) return bad("kernels do not reach spaces[0]");
  for (const double figure : {target.flops, target.bytes_per_second, target.launch_seconds}) {
    if (!std::isfinite(figure) || figure < 0) return bad("a cost is negative or not a number");
  }
  for (const int64_t number :
       {target.compute_units, target.preferred_lanes, target.most_lanes, target.vector_bytes,
        target.scratch_bytes, target.private_bytes, target.most_parameters, target.largest_buffer,
        target.narrow_products}) {
    if (number < 0) return bad(fmt::format("{} is negative", number));
  }
  for (const MathInfo& math : target.math) {
    const auto op = kernel::op_from_name(math.function);
    if (!op || !kernel::is_math(*op))
      return bad(fmt::format("there is no math function '{}'", math.function));
    if (!std::isfinite(math.ulp) || math.ulp < 0) {
      return bad(fmt::format("an error of {} ulp of '{}'", math.ulp, math.function));
    }
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
  form(!target.features.scratch, "no_scratch");
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
    text += fmt::format("space {}{}{}{} {} bytes, aligned to {}\n",
                        space.kind == SpaceKind::kDevice ? "device" : "pinned_host",
                        space.reachable ? "" : ", out of kernels' reach",
                        space.host_visible ? ", host-visible" : "",
                        space.host_writable ? ", host-writable" : "", space.bytes, space.alignment);
  }
  line("queues", target.queues, usual.queues);
  line("flops", target.flops, usual.flops);
  line("bytes_per_second", target.bytes_per_second, usual.bytes_per_second);
  line("launch_seconds", target.launch_seconds, usual.launch_seconds);
  line("narrow_products", target.narrow_products, usual.narrow_products);
  if (target.byte_products) text += "byte_products 1\n";
  for (const TuningValue& each : target.tuning) {
    text += fmt::format("tuning {} = {}\n", each.name, each.value);
  }
  return text;
}

namespace {

std::string_view stripped(std::string_view part) {
  const size_t first = part.find_first_not_of(" \t\r");
  const size_t last = part.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view()
                                         : part.substr(first, last - first + 1);
}

// The members of a target from the lines of to_string.
class TargetParser {
 public:
  Result<TargetInfo> run(std::string_view text) {
    target_.spaces.clear();
    for (int number = 1; !text.empty(); ++number) {
      const size_t end = std::min(text.find('\n'), text.size());
      rest_ = stripped(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (rest_.empty() || rest_.starts_with('#')) continue;
      const std::string_view line = rest_;
      const std::string_view name = word();
      if (!member(name) || !rest_.empty()) {
        return invalid_argument(
            "line {}: '{}' is no member of a target as 'tenon devices' writes it", number, line);
      }
      const bool is_listed = name == "math" || name == "space" || name == "tuning";
      if (!is_listed && !seen_.insert(name).second) {
        return invalid_argument("line {}: '{}' is stated twice", number, name);
      }
    }
    if (target_.spaces.empty()) target_.spaces.resize(1);
    TENON_TRY(check(target_));
    return std::move(target_);
  }

 private:
  // The text up to the next space, with which it is taken.
  std::string_view word() {
    const size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view taken = rest_.substr(0, end);
    rest_ = stripped(rest_.substr(end));
    return taken;
  }
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  template <class Number>
  bool number(Number& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }

  bool types(kernel::ElementTypes& set) {
    while (!rest_.empty()) {
      const auto type = element_type_from_name(word());
      if (!type) return false;
      set.insert(*type);
    }
    return true;
  }

  bool forms() {
    kernel::TargetFeatures& f = target_.features;
    f.fma = f.dimensions = false;
    const std::pair<std::string_view, bool*> known[] = {{"as_written", &target_.accepts_all},
                                                        {"fma", &f.fma},
                                                        {"tiles", &f.tiles},
                                                        {"scans", &f.scans},
                                                        {"private_memory", &f.private_memory},
                                                        {"dimensions", &f.dimensions},
                                                        {"math", &f.math}};
    while (!rest_.empty()) {
      const std::string_view name = word();
      const auto* const form =
          std::ranges::find(known, name, &std::pair<std::string_view, bool*>::first);
      if (form != std::end(known)) {
        *form->second = true;
      } else if (name == "no_scratch") {
        f.scratch = false;
      } else {
        return false;
      }
    }
    return true;
  }

  bool math() {
    MathInfo info;
    info.function = word();
    const auto type = element_type_from_name(word());
    if (!type || !number(info.ulp) || !take(" ulp")) return false;
    info.type = *type;
    target_.math.push_back(std::move(info));
    return true;
  }

  bool space() {
    SpaceInfo info;
    if (take("pinned_host")) {
      info.kind = SpaceKind::kPinnedHost;
    } else if (!take("device")) {
      return false;
    }
    info.reachable = !take(", out of kernels' reach");
    info.host_visible = take(", host-visible");
    info.host_writable = take(", host-writable");
    if (!take(" ") || !number(info.bytes) || !take(" bytes, aligned to ") ||
        !number(info.alignment)) {
      return false;
    }
    target_.spaces.push_back(info);
    return true;
  }

  bool byte_products() {
    int64_t stated = 0;
    if (!number(stated) || stated < 0 || stated > 1) return false;
    target_.byte_products = stated == 1;
    return true;
  }
  bool tuning() {
    auto values = parse_tuning(rest_);
    if (!values || values->size() != 1) return false;
    target_.tuning.push_back(std::move(values->front()));
    rest_ = {};
    return true;
  }

  bool text(std::string& to) {
    to = std::exchange(rest_, {});
    return true;
  }

  bool member(std::string_view name) {
    if (name == "name") return text(target_.name);
    if (name == "compiler") return text(target_.compiler_id);
    if (name == "types") return types(target_.features.computed);
    if (name == "converts") return types(target_.features.converted);
    if (name == "atomics") return types(target_.features.atomics);
    if (name == "flushed") return types(target_.flushed);
    if (name == "forms") return forms();
    if (name == "math") return math();
    if (name == "space") return space();
    if (name == "tuning") return tuning();
    if (name == "queues") return number(target_.queues);
    if (name == "flops") return number(target_.flops);
    if (name == "bytes_per_second") return number(target_.bytes_per_second);
    if (name == "launch_seconds") return number(target_.launch_seconds);
    if (name == "byte_products") return byte_products();
    const std::pair<std::string_view, int64_t*> integers[] = {
        {"compute_units", &target_.compute_units},
        {"preferred_lanes", &target_.preferred_lanes},
        {"most_lanes", &target_.most_lanes},
        {"vector_bytes", &target_.vector_bytes},
        {"scratch_bytes", &target_.scratch_bytes},
        {"private_bytes", &target_.private_bytes},
        {"most_parameters", &target_.most_parameters},
        {"largest_buffer", &target_.largest_buffer},
        {"narrow_products", &target_.narrow_products}};
    for (const auto& [known, value] : integers) {
      if (name == known) return number(*value);
    }
    return false;
  }

  TargetInfo target_;
  std::string_view rest_;
  std::set<std::string_view> seen_;  // Members that a target has once.
};

}  // namespace

Result<TargetInfo> parse_target(std::string_view text) { return TargetParser().run(text); }

Result<std::vector<TuningValue>> parse_tuning(std::string_view text) {
  std::vector<TuningValue> values;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line =
        stripped(text.substr(0, end).substr(0, text.substr(0, end).find('#')));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    TuningValue value;
    value.name = stripped(line.substr(0, equals));
    const std::string_view digits =
        equals == std::string_view::npos ? std::string_view() : stripped(line.substr(equals + 1));
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
