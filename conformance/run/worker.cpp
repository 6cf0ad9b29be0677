#include "conformance/run/worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "conformance/compare/record.h"
#include "core/base/digest.h"
#include "core/base/random.h"

namespace tenon::conformance {
namespace {

// Whether the line could be written: the parent may be gone.
bool answer(int to, const nlohmann::json& value) {
  // Names and messages may contain any bytes of a program.
  const std::string line =
      value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(to, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

CaseResult run_case(const ConformanceCase& one, Target& target, const WorkerOptions& options,
                    const std::function<void(const CaseResult&)>& on_failure) {
  CaseContext context{target, mix_bits(options.seed ^ serial::short_digest_of(one.name)),
                      options.reduce, options.relaxed, on_failure};
  return one.run(context);
}

int serve(const std::vector<ConformanceCase>& cases, const WorkerOptions& options,
          const std::function<Result<std::unique_ptr<Target>>()>& open) {
  // A process that a plug-in starts must not keep the parent waiting for the end of the answers.
  for (const int file : {STDIN_FILENO, options.answers}) fcntl(file, F_SETFD, FD_CLOEXEC);
  auto target = open();
  if (!target) {
    static_cast<void>(answer(options.answers, {{"error", target.error().to_string()}}));
    return 1;
  }
  const nlohmann::json ready = {{"ready", (*target)->description()},
                                {"counts_steps", (*target)->counts_steps()}};
  if (!answer(options.answers, ready)) return 1;
  size_t number = 0;
  while (std::cin >> number) {
    if (number >= cases.size()) return 1;
    CaseRecord record;
    record.name = cases[number].name;
    if (!answer(options.answers, {{"begin", record.name}})) return 1;
    const auto begin = std::chrono::steady_clock::now();
    record.result = run_case(cases[number], **target, options, [&](const CaseResult& found) {
      static_cast<void>(
          answer(options.answers, {{"found", to_json(CaseRecord{record.name, found, 0})}}));
    });
    record.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!answer(options.answers, to_json(record))) return 1;
    // Nothing can run on a lost device: the parent starts another worker.
    if (record.result.outcome == Outcome::kDeviceLost) return 0;
  }
  return 0;
}

}  // namespace tenon::conformance
