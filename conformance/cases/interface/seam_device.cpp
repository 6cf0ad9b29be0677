#include "conformance/cases/interface/seam_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/program_maker.h"
#include "core/base/random.h"
#include "core/kernel/text/text.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::conformance {

using backend::MemoryAddress;

Result<std::unique_ptr<SeamDevice>> SeamDevice::open(BackendDevice device) {
  std::unique_ptr<SeamDevice> opened(new SeamDevice(std::move(device)));
  TENON_ASSIGN(const auto devices, opened->backend().devices());
  if (opened->source_.index >= devices.size()) return internal_error("B9: the device is gone");
  opened->info_ = devices[opened->source_.index];
  TENON_TRY(opened->reopen());
  return opened;
}

Status SeamDevice::reopen() {
  TENON_ASSIGN(device_, backend().open(source_.index));
  return {};
}

Status SeamDevice::finish(uint32_t queue) {
  TENON_ASSIGN(const backend::EventHandle event, device_->record(queue));
  const auto done = device_->await(event, -1);
  device_->release(event);
  if (!done) return done.error();
  return *done ? Status()
               : internal_error("B25: await without limit says that the event is pending");
}

Status SeamDevice::upload(MemoryAddress to, std::span<const std::byte> from, uint32_t queue) {
  TENON_TRY(device_->copy(queue, to, MemoryAddress::of_host(from.data()),
                          static_cast<int64_t>(from.size())));
  return finish(queue);
}

Result<Bytes> SeamDevice::download(MemoryAddress from, int64_t bytes, uint32_t queue) {
  Bytes to(static_cast<size_t>(bytes), std::byte{0xA5});
  TENON_TRY(device_->copy(queue, MemoryAddress::of_host(to.data()), from, bytes));
  TENON_TRY(finish(queue));
  return to;
}

Result<SeamDevice::Loaded> SeamDevice::load_text(const std::vector<std::string>& texts) {
  std::vector<kernel::Kernel> kernels;
  for (const std::string& text : texts) {
    TENON_ASSIGN(kernel::Kernel parsed, kernel::parse(text, "case"));
    TENON_TRY(kernel::verify(parsed));
    kernels.push_back(std::move(parsed));
  }
  return load(kernels);
}

Result<SeamDevice::Loaded> SeamDevice::load(const std::vector<kernel::Kernel>& kernels) {
  Loaded loaded;
  for (const kernel::Kernel& each : kernels) {
    if (target().accepts_all) {
      loaded.kernels.push_back(each);
    } else {
      TENON_ASSIGN(kernel::Kernel legal, kernel::legalize(each, backend::features_of(target())));
      loaded.kernels.push_back(std::move(legal));
    }
  }
  std::vector<const kernel::Kernel*> pointers;
  for (const kernel::Kernel& each : loaded.kernels) pointers.push_back(&each);
  TENON_ASSIGN(backend::Compiled compiled, backend().compile(target(), pointers));
  if (!compiled.declined.empty()) {
    return unimplemented("the device declined kernel {}: {}: {}", compiled.declined[0].kernel,
                         backend::name_of(compiled.declined[0].reason), compiled.declined[0].text);
  }
  loaded.binary = std::move(compiled.binary);
  TENON_ASSIGN(loaded.module, device_->load(loaded.binary, pointers));
  return loaded;
}

Status SeamDevice::launch(backend::ModuleHandle module, std::vector<MemoryAddress> buffers,
                          std::vector<uint64_t> scalars, uint32_t queue, uint32_t kernel) {
  backend::KernelLaunch work;
  work.module = module;
  work.kernel = kernel;
  work.buffers = buffers;
  work.scalars = scalars;
  work.label = "conformance";
  TENON_TRY(device_->launch(queue, work));
  ++launches_;
  return {};
}

Bytes test_bytes(int64_t count, uint64_t seed) {
  Bytes bytes(static_cast<size_t>(count));
  Random random(seed);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random.bits());
  return bytes;
}

Status expect_bytes(std::string_view rule, std::span<const std::byte> got,
                    std::span<const std::byte> expected) {
  const auto [a, b] = std::ranges::mismatch(got, expected);
  if (a == got.end() && b == expected.end()) return {};
  return internal_error("{}: byte {} of {} is {:#04x}, expected {:#04x}", rule, a - got.begin(),
                        got.size(), static_cast<unsigned>(*a), static_cast<unsigned>(*b));
}

Status expect(bool holds, std::string_view rule, std::string_view what) {
  return holds ? Status() : internal_error("{}: {}", rule, what);
}

ConformanceCase seam_case(std::string name, SeamCheck check, bool launches) {
  ConformanceCase one;
  one.name = std::move(name);
  one.needs = CaseNeeds::kInterface;
  one.run = [check = std::move(check), launches](CaseContext& context) {
    auto released = context.target.release_device();
    if (!released) {
      CaseResult result = failed_run(released.error());
      result.outcome = Outcome::kHarnessError;  // Such targets do not run this case.
      return result;
    }
    auto device = SeamDevice::open(*std::move(released));
    if (!device) return failed_run(device.error());
    const Status status = check(**device, context.seed);
    CaseResult result = status.ok() ? CaseResult() : failed_run(status);
    if (!status.ok()) {
      result.listing = (*device)->listing();
      result.blame = result.listing.empty() ? Blame::kInterface : Blame::kKernel;
    }
    result.steps.kernels = launches ? (*device)->launches() : 1;
    return status.ok() ? with_steps_judged(std::move(result), context.target) : result;
  };
  return one;
}

}  // namespace tenon::conformance
