// Mutants of the functions of the interface.
#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "conformance/mutation/mutants.h"
#include "core/backend/layers/forward.h"

namespace tenon::conformance {
namespace {

using backend::KernelLaunch;
using backend::MemoryAddress;

struct SeamMutant {
  std::string_view name;
  std::string_view text;
};

constexpr SeamMutant kSeamMutants[] = {
    {"seam/copy/is_short", "copy leaves out the last byte"},
    {"seam/copy/is_skipped", "copy from the device does nothing"},
    {"seam/copy/ignores_offset", "copy ignores the offset of the source"},
    {"seam/copy/is_from_start", "copy to the device ignores the offset of the destination"},
    {"seam/copy/swallows_errors", "copy within the device does nothing and answers OK"},
    {"seam/launch/is_skipped", "every launch does nothing and answers OK"},
    {"seam/launch/every_third_is_skipped", "every third launch does nothing"},
    {"seam/launch/swaps_buffers", "the first two buffers of a launch are swapped"},
    {"seam/launch/ignores_offsets", "launch ignores the offsets of its buffers"},
    {"seam/launch/runs_other_kernel", "launch runs the first kernel of the module"},
    {"seam/launch/zeroes_scalars", "scalar arguments of a launch are 0"},
    {"seam/allocate/is_shared", "allocate gives the same memory twice"},
    {"seam/load/keeps_first", "load gives the first module again"},
    {"seam/event/fails", "an event ends with an error"},
    {"seam/open/fails_again", "the device opens once"},
};

class SeamMutantDevice : public backend::ForwardingDevice {
 public:
  SeamMutantDevice(std::unique_ptr<backend::Device> inner, std::string name)
      : ForwardingDevice(std::move(inner)), name_(std::move(name)) {}

  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override {
    MemoryAddress from = source;
    MemoryAddress to = destination;
    if (is("seam/copy/is_short") && bytes > 0) {
      --bytes;
      if (bytes == 0) return {};
    }
    if (is("seam/copy/is_skipped") && destination.on_host()) return {};
    if (is("seam/copy/ignores_offset") && !source.on_host()) from.offset = 0;
    if (is("seam/copy/is_from_start") && !destination.on_host()) to.offset = 0;
    if (is("seam/copy/swallows_errors") && !destination.on_host() && !source.on_host()) return {};
    return inner().copy(queue, to, from, bytes);
  }

  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    if (is("seam/launch/is_skipped")) return {};
    if (is("seam/launch/every_third_is_skipped") && ++launches_ % 3 == 0) return {};
    KernelLaunch changed = launch;
    std::vector<MemoryAddress> buffers(launch.buffers.begin(), launch.buffers.end());
    std::vector<uint64_t> scalars(launch.scalars.begin(), launch.scalars.end());
    if (is("seam/launch/swaps_buffers") && buffers.size() > 1) std::swap(buffers[0], buffers[1]);
    if (is("seam/launch/ignores_offsets")) {
      for (MemoryAddress& each : buffers) each.offset = 0;
    }
    if (is("seam/launch/runs_other_kernel")) changed.kernel = 0;
    if (is("seam/launch/zeroes_scalars")) std::ranges::fill(scalars, 0);
    changed.buffers = buffers;
    changed.scalars = scalars;
    return inner().launch(queue, changed);
  }

  Result<backend::MemoryHandle> allocate(uint32_t space, int64_t bytes) override {
    TENON_ASSIGN(const backend::MemoryHandle made, inner().allocate(space, bytes));
    if (!is("seam/allocate/is_shared")) return made;
    const auto [found, is_first] = first_of_.try_emplace(bytes, made);
    return found->second;
  }
  void free(backend::MemoryHandle memory) override {
    if (!is("seam/allocate/is_shared")) inner().free(memory);  // Else others still use it.
  }

  Result<backend::ModuleHandle> load(std::string_view binary, backend::Kernels kernels) override {
    if (!is("seam/load/keeps_first")) return inner().load(binary, kernels);
    if (first_module_ == 0) {
      TENON_ASSIGN(first_module_, inner().load(binary, kernels));
    }
    return first_module_;
  }
  void unload(backend::ModuleHandle module) override {
    if (!is("seam/load/keeps_first")) inner().unload(module);
  }

  Result<bool> await(backend::EventHandle event, int64_t timeout) override {
    TENON_ASSIGN(const bool done, inner().await(event, timeout));
    if (done && is("seam/event/fails") && ++awaited_ % 5 == 0) {
      return Error(Status(ErrorCode::kInternal, "the mutant fails"));
    }
    return done;
  }

 private:
  // Whether this is the mutant; then it is about to change something.
  bool is(std::string_view name) {
    if (name_ != name) return false;
    count_mutation();
    return true;
  }

  const std::string name_;
  int64_t launches_ = 0;
  int64_t awaited_ = 0;
  std::map<int64_t, backend::MemoryHandle> first_of_;
  backend::ModuleHandle first_module_ = 0;
};

class SeamMutantBackend : public backend::ForwardingBackend {
 public:
  SeamMutantBackend(std::shared_ptr<Backend> inner, std::string name)
      : ForwardingBackend(std::move(inner)), name_(std::move(name)) {}

  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    if (name_ == "seam/open/fails_again") {
      count_mutation();
      if (std::exchange(opened_, true))
        return Error(Status(ErrorCode::kUnavailable, "opened before"));
    }
    TENON_ASSIGN(auto device, inner().open(index));
    return std::make_unique<SeamMutantDevice>(std::move(device), name_);
  }
  // Every launch passes through the mutant.
  bool takes_segments() const override { return false; }

 private:
  const std::string name_;
  bool opened_ = false;
};

}  // namespace

std::vector<Mutant> seam_mutants() {
  std::vector<Mutant> list;
  for (const SeamMutant& each : kSeamMutants) {
    list.push_back({std::string(each.name), std::string(each.text), {}});
  }
  return list;
}

std::shared_ptr<backend::Backend> make_seam_mutant(std::shared_ptr<backend::Backend> inner,
                                                   const std::string& name) {
  return std::make_shared<SeamMutantBackend>(std::move(inner), name);
}

}  // namespace tenon::conformance
