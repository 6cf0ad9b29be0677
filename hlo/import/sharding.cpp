#include "hlo/import/sharding.h"

#include <algorithm>
#include <cstdlib>

namespace tenon::hlo {
namespace {

// Calls `visit(axis, rest)` for each "quoted" name in `text`; `rest` is the text after the closing
// quote.
template <class Visit>
void for_each_axis(std::string_view text, Visit visit) {
  size_t at = 0;
  while ((at = text.find('"', at)) != std::string_view::npos) {
    const size_t end = text.find('"', at + 1);
    if (end == std::string_view::npos) return;
    visit(std::string(text.substr(at + 1, end - at - 1)), text.substr(end + 1));
    at = end + 1;
  }
}

}  // namespace

void Shardings::add_mesh(const RawOp& op) {
  const Attribute* mesh = find(op.attributes, "mesh");
  const auto* text = mesh ? mesh->get<OpaqueAttr>() : nullptr;
  if (text == nullptr) return;
  for_each_axis(text->text, [&](std::string axis, std::string_view rest) {
    const size_t equals = rest.find_first_not_of(' ');
    int64_t size = 1;
    if (equals != std::string_view::npos && rest[equals] == '=') {
      size = std::strtoll(std::string(rest.substr(equals + 1, 24)).c_str(), nullptr, 10);
    }
    int64_t& known = axis_sizes_[std::move(axis)];
    known = std::max(known, size);
  });
}

Status Shardings::check_sdy(std::string_view what, std::string_view text) const {
  Status status;
  for_each_axis(text, [&](const std::string& axis, std::string_view) {
    const auto found = axis_sizes_.find(axis);
    const int64_t size = found == axis_sizes_.end() ? 1 : found->second;
    if (size > 1 && status.ok()) {
      status = unimplemented(
          "{}: sharding {} needs partitioning over axis \"{}\" of {} devices; "
          "programs run on one device",
          what, text, axis, size);
    }
  });
  return status;
}

Status Shardings::check_mhlo(std::string_view what, std::string_view text) {
  // A tuple sharding lists several: every tiling is checked.
  size_t at = 0;
  while ((at = text.find("devices=[", at)) != std::string_view::npos) {
    at += 9;
    const size_t end = std::min(text.find(']', at), text.size());
    const size_t close = std::min(text.find('}', end), text.size());
    const bool last_replicates =
        text.substr(end, close - end).find("last_tile_dim_replicate") != std::string_view::npos;
    int64_t tiles = 1;
    std::string_view list = text.substr(at, end - at);
    while (!list.empty()) {
      const size_t comma = std::min(list.find(','), list.size());
      const bool last = comma == list.size();
      const int64_t size = std::strtoll(
          std::string(list.substr(0, std::min<size_t>(comma, 20))).c_str(), nullptr, 10);
      if (!(last && last_replicates)) tiles = std::max(tiles, size);
      list.remove_prefix(std::min(comma + 1, list.size()));
    }
    if (tiles > 1) {
      return unimplemented("{}: sharding {} needs partitioning; programs run on one device", what,
                           text);
    }
  }
  return {};
}

Status Shardings::check(std::string_view what, const Dict& attributes) const {
  if (const Attribute* sharding = find(attributes, "mhlo.sharding")) {
    if (const auto* text = sharding->get<std::string>()) TENON_TRY(check_mhlo(what, *text));
  }
  if (const Attribute* sharding = find(attributes, "sdy.sharding")) {
    if (const auto* text = sharding->get<OpaqueAttr>()) TENON_TRY(check_sdy(what, text->text));
  }
  return {};
}

}  // namespace tenon::hlo
