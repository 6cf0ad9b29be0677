// Mutants of the functions of the interface: their list, and those of a backend itself.
#include <algorithm>
#include <utility>

#include "conformance/mutation/seam_devices.h"

namespace tenon::conformance {
namespace {

struct SeamMutant {
  std::string_view name;
  std::string_view text;
  std::string_view likely = "seam/*";
  uint32_t queues = 1;
};

constexpr SeamMutant kSeamMutants[] = {
    {"seam/copy/is_short", "copy leaves out the last byte"},
    {"seam/copy/is_long", "copy to the device writes one byte beyond", "seam/B17/*"},
    {"seam/copy/is_skipped", "copy from the device does nothing"},
    {"seam/copy/ignores_offset", "copy ignores the offset of the source"},
    {"seam/copy/is_from_start", "copy to the device ignores the offset of the destination"},
    {"seam/copy/rounds_offset_down", "copy takes offsets in words of 4 bytes", "seam/B17/*"},
    {"seam/copy/swallows_errors", "copy within the device does nothing and answers OK"},
    {"seam/copy/within_is_in_words", "copy within the device leaves out what is no whole word",
     "seam/B19/*"},
    {"seam/copy/has_a_largest_size", "copy leaves out what is beyond 64 KiB", "seam/B1*"},
    {"seam/copy/flips_a_bit", "copy to the device flips a bit beyond byte 4096"},
    {"seam/copy/keeps_host_pointer", "copy reads its source again after its event", "seam/B19/*"},
    {"seam/copy/is_out_of_order", "copy from the device runs on another queue", "seam/B2*", 3},
    {"seam/fill/is_short", "fill leaves out the last repetition", "seam/optional/*"},
    {"seam/fill/repeats_first_byte", "fill repeats the first byte", "seam/optional/*"},
    {"seam/copy_box/ignores_destination_strides", "copy_box writes a dense array",
     "seam/optional/*"},
    {"seam/copy_box/loses_signs", "copy_box takes negative strides as positive", "seam/optional/*"},
    {"seam/copy_box/is_short", "copy_box leaves out the last row", "seam/optional/*"},
    {"seam/launch/is_skipped", "every launch does nothing and answers OK"},
    {"seam/launch/every_third_is_skipped", "every third launch does nothing"},
    {"seam/launch/is_late", "a launch runs behind the next copy", "seam/B2*"},
    {"seam/launch/is_swapped", "a launch runs behind the next launch", "seam/B20/*"},
    {"seam/launch/runs_twice", "a launch runs twice", "kernel/K*"},
    {"seam/launch/is_on_first_queue", "every launch runs on queue 0", "seam/B20/*", 3},
    {"seam/launch/swaps_buffers", "the first two buffers of a launch are swapped"},
    {"seam/launch/last_buffer_is_first", "the last buffer of a launch is the first"},
    {"seam/launch/has_eight_buffers", "a launch has at most eight buffers", "seam/B21/*"},
    {"seam/launch/keeps_buffers", "a kernel's launches have the buffers of its first"},
    {"seam/launch/ignores_offsets", "launch ignores the offsets of its buffers"},
    {"seam/launch/runs_other_kernel", "launch runs the first kernel of the module"},
    {"seam/launch/zeroes_scalars", "scalar arguments of a launch are 0", "seam/B21/*"},
    {"seam/launch/truncates_scalars", "scalar arguments of a launch have 16 bits", "seam/B21/*"},
    {"seam/launch/reverses_scalars", "scalar arguments of a launch are in reverse", "seam/B21/*"},
    {"seam/launch/keeps_scalars", "a kernel's launches have the scalars of its first",
     "seam/B21/*"},
    {"seam/record/is_stale", "record returns an event from before the last work", "seam/B23/*"},
    {"seam/wait/is_skipped", "wait does nothing", "seam/B24/*", 3},
    {"seam/await/is_early", "await answers done before the work is", "seam/B23/*"},
    {"seam/await/does_not_wait", "await without limit answers pending", "seam/B2*"},
    {"seam/await/is_pending_again", "a done event is pending when asked again", "seam/B25/*"},
    {"seam/event/fails", "an event ends with an error"},
    {"seam/event/swallows_errors", "an event of failed work is done without an error",
     "seam/B27/*"},
    {"seam/event/keeps_error", "every event after failed work has its error", "seam/B27/*"},
    {"seam/event_time/goes_back", "a later event has an earlier time", "seam/optional/*"},
    {"seam/event_start/is_late", "work begins behind its end", "seam/optional/*"},
    {"seam/allocate/is_shared", "allocate gives the same memory twice"},
    {"seam/allocate/no_room_is_internal", "no room is TENON_INTERNAL", "seam/B16/*"},
    {"seam/allocate/no_room_is_unreported", "allocate gives less memory where there is no room",
     "seam/B16/*"},
    {"seam/allocate/loses_contents", "the contents of a block are lost at the next allocation"},
    {"seam/free/does_nothing", "free gives nothing back, of 1 GiB", "seam/B16/*"},
    {"seam/free/frees_another", "free frees the memory that was allocated last", "seam/B10/*"},
    {"seam/close/keeps_memory", "close gives nothing back, of 1 GiB", "seam/B11/*"},
    {"seam/load/keeps_first", "load gives the first module again"},
    {"seam/load/reads_binary_late", "a binary is read at the first launch", "seam/B14/*"},
    {"seam/unload/unloads_another", "unload unloads the module that was loaded last", "seam/B14/*"},
    {"seam/map/is_a_copy", "map returns a pointer to a copy", "seam/B29/*"},
    {"seam/import_memory/is_zero", "import_memory gives memory of zeros", "seam/B28/*"},
    {"seam/statistics/have_no_names", "statistics have no names", "seam/optional/*"},
    {"seam/devices/name_changes", "devices changes the name of a device", "seam/B9/*"},
    {"seam/devices/target_changes", "devices changes the TargetInfo of a device", "seam/B9/*"},
    {"seam/devices/third_fails", "every third call of devices fails", "seam/B*"},
    {"seam/compile/is_not_reproducible", "compile gives other bytes for the same kernels",
     "seam/B13/*"},
    {"seam/compile/declines_every_second", "every second compile declines its first kernel"},
    {"seam/open/fails_again", "the device opens once"},
    {"seam/open/fails_after_work", "the device does not open after close ended work", "seam/B11/*"},
};

class SeamMutantBackend : public backend::ForwardingBackend {
 public:
  SeamMutantBackend(std::shared_ptr<Backend> inner, const std::string& name)
      : ForwardingBackend(std::move(inner)), name_(name), mutant_(name) {}

  Result<std::vector<backend::DeviceInfo>> devices() override {
    TENON_ASSIGN(auto devices, inner().devices());
    const int64_t call = calls_++;
    if (mutant_.is("seam/devices/third_fails") && call % 3 == 2)
      return internal_error("the mutant fails");
    for (backend::DeviceInfo& each : devices) {
      if (mutant_.is("seam/devices/name_changes")) each.name += fmt::format("_{}", call);
      if (mutant_.is("seam/devices/target_changes")) each.target.launch_seconds = 1e-9 * call;
    }
    return devices;
  }

  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    const bool again = opened_.exchange(true);
    if (mutant_.is("seam/open/fails_again") && again)
      return Error(Status(ErrorCode::kUnavailable, "opened before"));
    if (mutant_.is("seam/open/fails_after_work") && state_->closed_with_work)
      return Error(Status(ErrorCode::kUnavailable, "closed with work"));
    TENON_ASSIGN(auto device, inner().open(index));
    return make_resource_mutant(make_work_mutant(std::move(device), name_, state_), name_, state_);
  }

  Result<backend::Compiled> compile(const backend::TargetInfo& target,
                                    backend::Kernels kernels) override {
    if (mutant_.is("seam/compile/declines_every_second") && compiled_++ % 2 == 1)
      return backend::Compiled{{}, {{0, backend::Reason::kOther, "the mutant declines it"}}};
    TENON_ASSIGN(backend::Compiled compiled, inner().compile(target, kernels));
    // make_resource_mutant takes the byte off again.
    if (mutant_.is("seam/compile/is_not_reproducible") && compiled.declined.empty())
      compiled.binary += static_cast<char>(compiled_++);
    return compiled;
  }

  // Every launch passes through the mutant.
  bool takes_segments() const override { return false; }

 private:
  const std::string name_;
  const ChosenMutant mutant_;
  const std::shared_ptr<SessionState> state_ = std::make_shared<SessionState>();
  std::atomic<bool> opened_ = false;
  std::atomic<int64_t> calls_ = 0;
  std::atomic<int64_t> compiled_ = 0;
};

}  // namespace

std::vector<Mutant> seam_mutants() {
  std::vector<Mutant> list;
  for (const SeamMutant& each : kSeamMutants) {
    list.push_back({std::string(each.name),
                    std::string(each.text),
                    {std::string(each.likely), "seam/*", "kernel/K*", "memory/*", "runtime/*"},
                    each.queues});
  }
  return list;
}

std::shared_ptr<backend::Backend> make_seam_mutant(std::shared_ptr<backend::Backend> inner,
                                                   const std::string& name) {
  return std::make_shared<SeamMutantBackend>(std::move(inner), name);
}

}  // namespace tenon::conformance
