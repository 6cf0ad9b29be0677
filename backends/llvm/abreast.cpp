#include "backends/llvm/abreast.h"

#include <llvm/CodeGen/MachineFunction.h>
#include <llvm/CodeGen/MachineScheduler.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/Function.h>
#include <llvm/Support/CommandLine.h>

#include <memory>

namespace tenon::codegen {
namespace {

constexpr const char* kAttribute = "tenon-abreast";
constexpr const char* kScheduler = "tenon";

// LLVM's scheduler by latencies alone, which keeps the order that instructions were made in where
// latencies do not matter.
class AbreastScheduler : public llvm::GenericScheduler {
 public:
  using GenericScheduler::GenericScheduler;

  void initPolicy(llvm::MachineBasicBlock::iterator begin, llvm::MachineBasicBlock::iterator end,
                  unsigned instructions) override {
    GenericScheduler::initPolicy(begin, end, instructions);
    RegionPolicy.ShouldTrackPressure = false;
    RegionPolicy.ShouldTrackLaneMasks = false;
  }
};

llvm::ScheduleDAGInstrs* make_scheduler(llvm::MachineSchedContext* context) {
  if (context->MF->getFunction().hasFnAttribute(kAttribute)) {
    auto scheduler = std::make_unique<llvm::ScheduleDAGMILive>(
        context, std::make_unique<AbreastScheduler>(context));
    scheduler->addMutation(llvm::createCopyConstrainDAGMutation(scheduler->TII, scheduler->TRI));
    return scheduler.release();
  }
  if (auto* const of_target = context->PassConfig->createMachineScheduler(context))
    return of_target;
  return llvm::createGenericSchedLive(context);
}

}  // namespace

void keep_abreast(llvm::Function& function) { function.addFnAttr(kAttribute); }

// The choice of a scheduler is an option of LLVM's, of the process.
void heed_abreast() {
  static const bool done = [] {
    static const llvm::MachineSchedRegistry entry(
        kScheduler, "LLVM's order, but for functions of vectors abreast", make_scheduler);
    auto& options = llvm::cl::getRegisteredOptions();
    const auto found = options.find("misched");
    return found != options.end() && !found->second->addOccurrence(0, "misched", kScheduler);
  }();
  static_cast<void>(done);
}

}  // namespace tenon::codegen
