#include "core/kernel/render/c_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/base/file.h"
#include "core/base/process/environment.h"

namespace tenon::kernel {
namespace {

constexpr size_t kMostPointers = 4;

// Compiles `source` in `folder`, and returns the path of the shared object.
Result<std::string> compile_in(const TemporaryFolder& folder, const std::string& source,
                               const std::string& compiler) {
  const std::string file = folder.file("kernels");
  if (Status written = write_file(file + ".c", source); !written.ok()) {
    return tl::unexpected(std::move(written));
  }
  const std::string command =
      fmt::format("{} -std=c99 -ffp-contract=off -fPIC -shared {}.c -o {}.so -lm >{}.log 2>&1",
                  compiler, file, file, file);
  if (std::system(command.c_str()) != 0) {
    // kUnavailable would say that the device is lost (B12).
    return internal_error("the C compiler refused ({}):\n{}", compiler,
                          read_file(file + ".log").value_or(""));
  }
  return file + ".so";
}

}  // namespace

Result<std::string> compile_c(const std::string& source, const std::string& compiler) {
  TENON_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create("tenon"));
  TENON_ASSIGN(const std::string file, compile_in(folder, source, compiler));
  return read_file(file);
}

Result<CLibrary> CLibrary::compile(const std::string& source, const std::string& flags,
                                   const std::string& compiler) {
  TENON_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create("tenon"));
  TENON_ASSIGN(
      const std::string file,
      compile_in(folder, source,
                 fmt::format("{} -Wall -Wextra -Werror -Wno-unused-variable "
                             "-Wno-unused-function -Wno-unused-but-set-variable "
                             "-Wno-tautological-compare {}",
                             compiler.empty() ? environment_or("CC", "cc") : compiler, flags)));
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return internal_error("{}", dlerror());
  return CLibrary(std::shared_ptr<void>(handle, [](void* p) { dlclose(p); }));
}

Status CLibrary::call(const std::string& name, std::span<void* const> pointers) const {
  if (pointers.size() > kMostPointers) {
    return {ErrorCode::kInvalidArgument, fmt::format("{}: at most four pointers", name)};
  }
  void* function = dlsym(handle_.get(), name.c_str());
  if (function == nullptr) {
    return {ErrorCode::kNotFound, fmt::format("the library has no function {}", name)};
  }
  std::array<void*, kMostPointers> p = {};
  std::ranges::copy(pointers, p.begin());
  // C's calling conventions ignore arguments that the function does not have.
  reinterpret_cast<void (*)(void*, void*, void*, void*)>(function)(p[0], p[1], p[2], p[3]);
  return {};
}

}  // namespace tenon::kernel
