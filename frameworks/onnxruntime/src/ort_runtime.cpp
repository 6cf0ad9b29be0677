#include "frameworks/onnxruntime/src/ort_runtime.h"

namespace tenon::ort {

Status OrtRuntime::taken(OrtStatus* status) const {
  const OrtErrorCode code = get<GetErrorCode>(status);
  std::string text = get<GetErrorMessage>(status);
  get<ReleaseStatus>(status);
  const ErrorCode mapped = code == kOrtInvalidArgument  ? ErrorCode::kInvalidArgument
                           : code == kOrtNotImplemented ? ErrorCode::kUnimplemented
                                                        : ErrorCode::kUnknown;
  return Status(mapped, "ONNX Runtime: " + text);
}

OrtStatus* OrtRuntime::status_of(const Status& status) const noexcept {
  // Not the code of a failed provider, at which ONNX Runtime's Python repeats the call on the CPU.
  const OrtErrorCode code = status.code() == ErrorCode::kInvalidArgument ? kOrtInvalidArgument
                            : status.code() == ErrorCode::kUnimplemented ? kOrtNotImplemented
                                                                         : kOrtFail;
  try {
    return get<CreateStatus>(code, ("tenon: " + status.message()).c_str());
  } catch (const std::bad_alloc&) {
    return get<CreateStatus>(code, "tenon: out of memory");
  }
}

void OrtRuntime::log(const OrtLogger* logger, OrtLoggingLevel level,
                     const std::string& text) const noexcept {
  if (logger == nullptr) return;
  OrtLoggingLevel least = kOrtWarning;
  OrtStatus* failed = get<LoggerGetLoggingSeverityLevel>(logger, &least);
  if (failed == nullptr && level >= least) {
    failed = get<LoggerLogMessage>(logger, level, text.c_str(), "tenon", 0, "tenon");
  }
  if (failed != nullptr) get<ReleaseStatus>(failed);
}

}  // namespace tenon::ort
