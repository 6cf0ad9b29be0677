#include "hlo/driver/call_planner.h"

#include "core/program/serial.h"

namespace tenon::hlo {
namespace {

std::string key_of(const backend::LibraryCallSite& site) {
  std::string key = program::save_call(site.call);
  for (const auto& shapes : {site.operands, site.results}) {
    for (const Shape& each : shapes) key += each.to_string() + ';';
    key += '|';
  }
  for (const bool each : site.constant) key += each ? 'c' : '-';
  return key;
}

}  // namespace

Result<const CallAnswer*> CallPlanner::plan(const backend::LibraryCallSite& site) {
  const auto [known, added] = answers_.try_emplace(key_of(site));
  CallAnswer& answer = known->second;
  if (!added) return &answer;
  auto plan = backend_.plan(target_, site);
  if (plan) {
    answer.plan = *std::move(plan);
    return &answer;
  }
  if (plan.error().code() != ErrorCode::kUnimplemented) return tl::make_unexpected(plan.error());
  const auto unasked = backend_.Backend::plan(target_, site);
  if (unasked || unasked.error() != plan.error()) {
    answer.declined =
        fmt::format("{} declined: {}", program::name_of(site.call), plan.error().message());
  }
  return &answer;
}

}  // namespace tenon::hlo
