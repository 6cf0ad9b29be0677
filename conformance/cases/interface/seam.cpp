// The rules of the interface (core/backend/plugin.h, B1 … B29), each by calls of its functions.
#include <fmt/format.h>

#include "conformance/cases/interface/seam_checks.h"

namespace tenon::conformance {
namespace {

using namespace seam_checks;  // NOLINT(google-build-using-namespace): the table names all of them

struct SeamCase {
  const char* name;
  Status (*check)(SeamDevice& device);
  bool launches = true;
};
constexpr SeamCase kCases[] = {
    {"B7/awaits_from_threads", awaits_from_threads},
    {"B7/compiles_from_threads", compiles_from_threads, false},
    {"B7/devices_from_threads", devices_from_threads, false},
    {"B9/devices_are_stable", devices_are_stable, false},
    {"B9/target_is_possible", target_is_possible, false},
    {"B11/opens_again", opens_again, false},
    {"B11/closes_with_work", closes_with_work},
    {"B13/compiles_the_same", compiles_the_same, false},
    {"B14/kernels_by_index", kernels_by_index},
    {"B14/loads_in_another_session", loads_in_another_session},
    {"B14/many_modules", many_modules},
    {"B16/allocates_each_size", allocates_each_size, false},
    {"B16/allocations_are_apart", allocations_are_apart, false},
    {"B16/frees_what_it_allocates", frees_what_it_allocates, false},
    {"B16/spaces_allocate", spaces_allocate, false},
    {"B16/too_large_is_exhausted", too_large_is_exhausted, false},
    {"B17/buffers_at_offsets", buffers_at_offsets},
    {"B17/copies_at_offsets", copies_at_offsets, false},
    {"B19/copies_on_the_device", copies_on_the_device, false},
    {"B19/source_may_change_after_event", source_may_change_after_event, false},
    {"B20/copies_are_in_order_with_launches", copies_are_in_order_with_launches},
    {"B20/every_queue_works", every_queue_works},
    {"B20/work_is_in_order", work_is_in_order},
    {"B21/passes_many_buffers", passes_many_buffers},
    {"B21/passes_scalars", passes_scalars},
    {"B22/same_bits_each_run", same_bits_each_run},
    {"B23/event_means_done", event_means_done},
    {"B23/event_of_no_work", event_of_no_work, false},
    {"B24/queues_wait", queues_wait},
    {"B24/waits_for_done_event", waits_for_done_event, false},
    {"B25/done_event_stays_done", done_event_stays_done},
    {"B26/release_before_done", release_before_done},
    {"B28/imports_host_memory", imports_host_memory},
    {"B29/maps_memory", maps_memory},
    {"optional/copies_boxes", copies_boxes, false},
    {"optional/fills", fills, false},
    {"optional/states_statistics", states_statistics, false},
    {"optional/times_events", times_events, false},
};

}  // namespace

void add_seam_cases(CaseList& list) {
  for (const SeamCase& each : kCases) {
    ConformanceCase one = seam_case(
        fmt::format("seam/{}", each.name),
        [check = each.check](SeamDevice& device, uint64_t) { return check(device); },
        each.launches);
    one.tier = &each == kCases ? Tier::kSmoke : Tier::kQuick;
    list.cases.push_back(std::move(one));
  }
}

}  // namespace tenon::conformance
