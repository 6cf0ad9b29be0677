#include "core/backend/adapter/c_types.h"

#include <algorithm>

#include "core/kernel/ir/ops.h"

namespace tenon::backend {

void write(const TenonSink* sink, std::string_view text) {
  if (sink != nullptr && sink->write != nullptr) {
    sink->write(sink->context, text.data(), text.size());
  }
}

TenonCode to_code(const Status& status, const TenonSink* error) {
  if (!status.ok()) write(error, status.message());
  return static_cast<TenonCode>(status.code());
}

Status status_of(TenonCode code, SinkText& text, std::string_view function) {
  if (code == TENON_OK) return {};
  const bool known = code > TENON_OK && code <= TENON_UNAUTHENTICATED;
  std::string message = text.take();
  if (message.empty()) {
    message = fmt::format("{} gives code {} without a text (B4)", function, static_cast<int>(code));
  }
  return Status(known ? static_cast<ErrorCode>(code) : ErrorCode::kUnknown, std::move(message));
}

// --- TargetInfo

CTarget::CTarget(const TargetInfo& target) : target_(target) {
  for (size_t i = 0; i < kElementTypeCount; ++i) {
    const auto type = static_cast<ElementType>(i);
    const bool flushed = target_.flushed.contains(type);
    const bool converted = target_.features.converts(type);
    if (!target_.features.computed.contains(type) && !flushed && !converted) continue;
    TenonTypeInfo info{};
    info.size = sizeof info;
    info.type = c_name_of(type);
    info.computed = target_.features.computed.contains(type) ? 1 : 0;
    info.atomics = target_.features.atomics.contains(type) ? 1 : 0;
    info.denormals = flushed ? 0 : 1;
    info.converted = converted ? 1 : 0;
    types_.push_back(info);
  }
  for (const MathInfo& each : target_.math) {
    math_.push_back({sizeof(TenonMathInfo), each.function.c_str(), c_name_of(each.type), each.ulp});
  }
  for (const SpaceInfo& each : target_.spaces) {
    TenonSpaceInfo info{};
    info.size = sizeof info;
    info.kind = static_cast<TenonSpaceKind>(each.kind);
    info.reachable = each.reachable ? 1 : 0;
    info.host_visible = each.host_visible ? 1 : 0;
    info.host_writable = each.host_writable ? 1 : 0;
    info.bytes = each.bytes;
    info.alignment = each.alignment;
    spaces_.push_back(info);
  }
  const kernel::TargetFeatures& form = target_.features;
  info_.size = sizeof info_;
  info_.name = target_.name.c_str();
  info_.compiler_id = target_.compiler_id.c_str();
  info_.types = types_.data();
  info_.type_count = types_.size();
  info_.math = math_.data();
  info_.math_count = math_.size();
  info_.forms = (form.fma ? TENON_FORM_FMA : 0) | (form.tiles ? TENON_FORM_TILES : 0) |
                (form.scans ? TENON_FORM_SCANS : 0) |
                (form.private_memory ? TENON_FORM_PRIVATE_MEMORY : 0) |
                (form.dimensions ? TENON_FORM_DIMENSIONS : 0) |
                (target_.accepts_all ? TENON_FORM_AS_WRITTEN : 0);
  info_.compute_units = target_.compute_units;
  info_.preferred_lanes = target_.preferred_lanes;
  info_.most_lanes = target_.most_lanes;
  info_.vector_bytes = target_.vector_bytes;
  info_.scratch_bytes = target_.scratch_bytes == 0 ? TENON_NO_SCRATCH : target_.scratch_bytes;
  info_.private_bytes = target_.private_bytes;
  info_.most_parameters = target_.most_parameters;
  info_.largest_buffer = target_.largest_buffer;
  info_.spaces = spaces_.data();
  info_.space_count = spaces_.size();
  info_.queues = target_.queues;
  info_.flops = target_.flops;
  info_.bytes_per_second = target_.bytes_per_second;
  info_.launch_seconds = target_.launch_seconds;
  tuning_ = to_string(target_.tuning);
  info_.tuning = tuning_.c_str();
  info_.narrow_products = target_.narrow_products;
  info_.byte_products = target_.byte_products ? 1 : 0;
}

namespace {

using Info = TenonTargetInfo;

std::string text_or_nothing(const char* text) { return text == nullptr ? "" : text; }

Result<ElementType> type_named(const char* name) {
  const auto type = element_type_from_name(name == nullptr ? "" : name);
  if (type) return *type;
  return failed_precondition("there is not an element type '{}'", text_or_nothing(name));
}

Status read_type(const TenonTypeInfo& info, TargetInfo& target) {
  TENON_ASSIGN(const ElementType type, type_named(member_or(info, &TenonTypeInfo::type, {})));
  const auto flag = [&](auto member) { return member_or(info, member, uint8_t{0}) != 0; };
  if (flag(&TenonTypeInfo::computed)) target.features.computed.insert(type);
  if (member_or(info, &TenonTypeInfo::converted, uint64_t{0}) != 0) {
    target.features.converted.insert(type);
  }
  if (flag(&TenonTypeInfo::atomics)) target.features.atomics.insert(type);
  if (!flag(&TenonTypeInfo::denormals) && is_float(type)) target.flushed.insert(type);
  return {};
}

Status read_math(const TenonMathInfo& info, TargetInfo& target) {
  TENON_ASSIGN(const ElementType type, type_named(member_or(info, &TenonMathInfo::type, {})));
  target.math.push_back({text_or_nothing(member_or(info, &TenonMathInfo::function, {})), type,
                         member_or(info, &TenonMathInfo::ulp, {})});
  return {};
}

// The functions that the target does not list are expanded: those that a release after the
// plug-in's added, too.
void read_functions(TargetInfo& target) {
  target.features.math = !target.math.empty();
  for (int i = 0; i < kernel::kScalarOpCount; ++i) {
    const auto op = static_cast<kernel::OpCode>(i);
    if (!kernel::is_math(op)) continue;
    for (size_t t = 0; t < kElementTypeCount; ++t) {
      const auto type = static_cast<ElementType>(t);
      const bool listed = std::ranges::any_of(target.math, [&](const MathInfo& math) {
        return math.type == type && math.function == kernel::op_name(op);
      });
      if (is_float(type) && !listed) target.features.expanded.insert(op, type);
    }
  }
}

Status read_space(const TenonSpaceInfo& info, TargetInfo& target) {
  const auto kind = member_or(info, &TenonSpaceInfo::kind, TENON_SPACE_DEVICE);
  SpaceInfo space;
  space.kind = kind == TENON_SPACE_PINNED_HOST ? SpaceKind::kPinnedHost : SpaceKind::kDevice;
  space.reachable = member_or(info, &TenonSpaceInfo::reachable, {}) != 0;
  space.host_visible = member_or(info, &TenonSpaceInfo::host_visible, {}) != 0;
  space.host_writable = member_or(info, &TenonSpaceInfo::host_writable, {}) != 0;
  space.bytes = member_or(info, &TenonSpaceInfo::bytes, {});
  space.alignment = member_or(info, &TenonSpaceInfo::alignment, {});
  target.spaces.push_back(space);
  return {};
}

// The elements of an array of `info`.
template <class Struct>
Status read_array(const Info& info, const Struct* Info::* array, size_t Info::* count,
                  TargetInfo& target, Status (*read)(const Struct&, TargetInfo&)) {
  return each_of(member_or(info, array, {}), member_or(info, count, {}),
                 [&](const Struct& element) { return read(element, target); });
}

}  // namespace

Result<TargetInfo> target_of(const Info& info) {
  TargetInfo target;
  const TargetInfo usual;
  target.name = text_or_nothing(member_or(info, &Info::name, {}));
  target.compiler_id = text_or_nothing(member_or(info, &Info::compiler_id, {}));
  TENON_TRY(read_array(info, &Info::types, &Info::type_count, target, &read_type));
  TENON_TRY(read_array(info, &Info::math, &Info::math_count, target, &read_math));
  target.spaces.clear();
  TENON_TRY(read_array(info, &Info::spaces, &Info::space_count, target, &read_space));
  const uint64_t forms = member_or(info, &Info::forms, uint64_t{0});
  target.features.fma = (forms & TENON_FORM_FMA) != 0;
  target.features.tiles = (forms & TENON_FORM_TILES) != 0;
  target.features.scans = (forms & TENON_FORM_SCANS) != 0;
  target.features.private_memory = (forms & TENON_FORM_PRIVATE_MEMORY) != 0;
  target.features.dimensions = (forms & TENON_FORM_DIMENSIONS) != 0;
  target.accepts_all = (forms & TENON_FORM_AS_WRITTEN) != 0;
  read_functions(target);
  // 0 means the default if the default is not 0.
  const auto number = [&](auto Info::* member, auto TargetInfo::* to) {
    const auto value = member_or(info, member, {});
    target.*to = value == 0 ? usual.*to : value;
  };
  number(&Info::compute_units, &TargetInfo::compute_units);
  number(&Info::preferred_lanes, &TargetInfo::preferred_lanes);
  number(&Info::most_lanes, &TargetInfo::most_lanes);
  number(&Info::vector_bytes, &TargetInfo::vector_bytes);
  number(&Info::scratch_bytes, &TargetInfo::scratch_bytes);
  if (target.scratch_bytes == TENON_NO_SCRATCH) target.scratch_bytes = 0;
  number(&Info::private_bytes, &TargetInfo::private_bytes);
  number(&Info::most_parameters, &TargetInfo::most_parameters);
  number(&Info::largest_buffer, &TargetInfo::largest_buffer);
  number(&Info::queues, &TargetInfo::queues);
  number(&Info::narrow_products, &TargetInfo::narrow_products);
  target.byte_products = member_or(info, &Info::byte_products, uint64_t{0}) != 0;
  number(&Info::flops, &TargetInfo::flops);
  number(&Info::bytes_per_second, &TargetInfo::bytes_per_second);
  number(&Info::launch_seconds, &TargetInfo::launch_seconds);
  auto tuning = parse_tuning(text_or_nothing(member_or(info, &Info::tuning, {})));
  if (!tuning) return tl::make_unexpected(Status(tuning.error()).with_context("tuning"));
  target.tuning = *std::move(tuning);
  TENON_TRY(check(target));
  return target;
}

TenonPlace c_place(const MemoryAddress& place) { return {place.memory, place.offset, place.host}; }
MemoryAddress place_of(const TenonPlace& place) {
  return {place.memory, place.offset, static_cast<std::byte*>(place.host)};
}

}  // namespace tenon::backend
