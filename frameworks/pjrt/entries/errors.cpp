// Errors and events.
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/objects.h"

namespace tenon::pjrt {
namespace {

struct Error : PJRT_Error {
  ErrorCode code = ErrorCode::kUnknown;
  std::string message;
};

const Error& of(const PJRT_Error* error) { return *static_cast<const Error*>(error); }

void destroy(PJRT_Error* error) {
  if (error != nullptr && error != out_of_memory()) delete static_cast<Error*>(error);
}

void text_of(const PJRT_Error* error, const char** message, size_t* message_size) {
  *message = of(error).message.c_str();
  *message_size = of(error).message.size();
}

PJRT_Error_Code number_of(const PJRT_Error* error) {
  return static_cast<PJRT_Error_Code>(of(error).code);
}

// Errors carry no payloads.
void visit_payloads(const PJRT_Error*, PJRT_Error_PayloadVisitor, void*) {}

const PJRT_Error_FunctionTable kErrorFunctions = {sizeof(PJRT_Error_FunctionTable),
                                                  sizeof(Error),
                                                  nullptr,
                                                  &destroy,
                                                  &text_of,
                                                  &number_of,
                                                  &visit_payloads};

std::string text_of(const Status& status) {
  const SourcePosition& at = status.position();
  if (!at.known()) return status.message();
  return fmt::format("{}:{}:{}: {}", at.file, at.line, at.column, status.message());
}

// --- Functions of the table

void error_destroy(PJRT_Error_Destroy_Args* args) { destroy(args->error); }

void error_message(PJRT_Error_Message_Args* args) {
  text_of(args->error, &args->message, &args->message_size);
}

Status error_get_code(PJRT_Error_GetCode_Args& args) {
  args.code = number_of(args.error);
  return {};
}

Status error_for_each_payload(PJRT_Error_ForEachPayload_Args& args) {
  visit_payloads(args.error, args.visitor, args.user_arg);
  return {};
}

Status event_destroy(PJRT_Event_Destroy_Args& args) {
  delete args.event;
  return {};
}

Status event_is_ready(PJRT_Event_IsReady_Args& args) {
  args.is_ready = args.event->event.is_ready();
  return {};
}

Status event_error(PJRT_Event_Error_Args& args) {
  const runtime::Event event = args.event->event;
  if (event.is_ready()) return event.await();
  return failed_precondition("the event has not happened yet");
}

// The event may be destroyed while another thread waits for it.
Status event_await(PJRT_Event_Await_Args& args) {
  const runtime::Event event = args.event->event;
  return event.await();
}

// The callback may destroy the event that calls it.
Status event_on_ready(PJRT_Event_OnReady_Args& args) {
  const runtime::Event event = args.event->event;
  event.on_ready([callback = args.callback, user = args.user_arg](const Status& status) {
    callback(error_of(status), user);
  });
  return {};
}

Status event_create(PJRT_Event_Create_Args& args) {
  auto promise = std::make_unique<runtime::Promise>();
  const runtime::Event event = promise->event();
  args.event = new PJRT_Event{event, std::move(promise)};
  return {};
}

Status event_set(PJRT_Event_Set_Args& args) {
  PJRT_Event& event = *args.event;
  if (event.promise == nullptr) return invalid_argument("the event is not one of the caller's");
  if (event.event.is_ready()) return failed_precondition("the event is set already");
  event.promise->set(status_of(args.error_code, args.error_message, args.error_message_size));
  return {};
}

std::unique_ptr<Error> made(ErrorCode code, std::string text) {
  auto error = std::make_unique<Error>();
  error->vtable = &kErrorFunctions;
  error->code = code;
  error->message = std::move(text);
  return error;
}

}  // namespace

PJRT_Error* out_of_memory() noexcept {
  static Error* const error =
      made(ErrorCode::kResourceExhausted, "the host has no memory left").release();
  return error;
}

PJRT_Error* error_of(const Status& status) noexcept {
  if (status.ok()) return nullptr;
  try {
    return made(status.code(), text_of(status)).release();
  } catch (...) {
    return out_of_memory();
  }
}

PJRT_Error* error_of(ErrorCode code, const char* text) noexcept {
  try {
    return made(code, text).release();
  } catch (...) {
    return out_of_memory();
  }
}

ErrorCode code_of(PJRT_Error_Code code) {
  const int number = code;
  const bool known = number >= 1 && number <= static_cast<int>(ErrorCode::kUnauthenticated);
  return known ? static_cast<ErrorCode>(number) : ErrorCode::kUnknown;
}

Status status_of(PJRT_Error_Code code, const char* message, size_t message_size) {
  if (code == PJRT_Error_Code_OK) return {};
  return Status(code_of(code), std::string(view_of(message, message_size)));
}

Status take_error(PJRT_Error* error) {
  if (error == nullptr) return {};
  Status status(of(error).code, of(error).message);
  destroy(error);
  return status;
}

void add_errors(PJRT_Api& api) {
  static_cast<void>(out_of_memory());  // Created while there is memory.
  api.PJRT_Error_Destroy = &error_destroy;
  api.PJRT_Error_Message = &error_message;
  api.PJRT_Error_GetCode = entry<error_get_code>;
  api.PJRT_Error_ForEachPayload = entry<error_for_each_payload>;
  api.PJRT_Event_Destroy = entry<event_destroy>;
  api.PJRT_Event_IsReady = entry<event_is_ready>;
  api.PJRT_Event_Error = entry<event_error>;
  api.PJRT_Event_Await = entry<event_await>;
  api.PJRT_Event_OnReady = entry<event_on_ready>;
  api.PJRT_Event_Create = entry<event_create>;
  api.PJRT_Event_Set = entry<event_set>;
}

}  // namespace tenon::pjrt
