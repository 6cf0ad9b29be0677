// The extension Shardings: nothing is split, since programs run on one device.
//
// Without it jaxlib would derive the shardings from the optimized program, after each compilation.
#include "frameworks/pjrt/c_api/shardings_extension.h"

#include "frameworks/pjrt/entries/executables.h"
#include "frameworks/pjrt/entries/table.h"

namespace tenon::pjrt {
namespace {

Status parameter_shardings(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args& args) {
  args.num_parameters = args.executable->state->parameters.types.size();
  args.shardings = nullptr;
  args.sharding_sizes = nullptr;
  return {};
}

Status output_shardings(PJRT_Shardings_PJRT_Executable_OutputShardings_Args& args) {
  args.num_outputs = args.executable->state->results.types.size();
  args.shardings = nullptr;
  args.sharding_sizes = nullptr;
  return {};
}

}  // namespace

PJRT_Extension_Base* shardings_extension(PJRT_Extension_Base* next) {
  static PJRT_Shardings_Extension extension = {
      {sizeof(PJRT_Shardings_Extension), PJRT_Extension_Type_Shardings, next},
      entry<parameter_shardings>,
      entry<output_shardings>};
  return &extension.base;
}

}  // namespace tenon::pjrt
