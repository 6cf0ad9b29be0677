// Checks of the interface's rules, by calls of its functions: seam_memory.cpp and seam_work.cpp
// have them, seam.cpp names the cases.
#pragma once

#include "conformance/cases/interface/seam_device.h"

namespace tenon::conformance::seam_checks {

// --- Devices

Status devices_are_stable(SeamDevice& d);
Status target_is_possible(SeamDevice& d);
Status devices_from_threads(SeamDevice& d);
Status opens_again(SeamDevice& d);
Status closes_with_work(SeamDevice& d);

// --- Memory

Status allocates_each_size(SeamDevice& d);
Status allocations_are_apart(SeamDevice& d);
Status too_large_is_exhausted(SeamDevice& d);
Status frees_what_it_allocates(SeamDevice& d);
Status spaces_allocate(SeamDevice& d);

// --- Copies

Status copies_at_offsets(SeamDevice& d);
Status copies_on_the_device(SeamDevice& d);
Status source_may_change_after_event(SeamDevice& d);
Status fills(SeamDevice& d);
Status copies_boxes(SeamDevice& d);

// --- Memory that host and device share

Status imports_host_memory(SeamDevice& d);
Status maps_memory(SeamDevice& d);
Status times_events(SeamDevice& d);
Status states_statistics(SeamDevice& d);

// --- Compiling and loading

Status compiles_the_same(SeamDevice& d);
Status kernels_by_index(SeamDevice& d);
Status loads_in_another_session(SeamDevice& d);
Status many_modules(SeamDevice& d);
Status compiles_from_threads(SeamDevice& d);

// --- Work and its order

Status work_is_in_order(SeamDevice& d);
Status copies_are_in_order_with_launches(SeamDevice& d);
Status buffers_at_offsets(SeamDevice& d);
Status passes_scalars(SeamDevice& d);
Status passes_many_buffers(SeamDevice& d);
Status same_bits_each_run(SeamDevice& d);

// --- Events

Status event_of_no_work(SeamDevice& d);
Status done_event_stays_done(SeamDevice& d);
Status event_means_done(SeamDevice& d);
Status release_before_done(SeamDevice& d);
Status awaits_from_threads(SeamDevice& d);

// --- Queues

Status queues_wait(SeamDevice& d);
Status waits_for_done_event(SeamDevice& d);
Status every_queue_works(SeamDevice& d);

}  // namespace tenon::conformance::seam_checks
