#include "core/backend/registry/plugin_file.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/base/file.h"

namespace tenon::backend {
namespace {

using FileHeader = ElfW(Ehdr);
using ProgramHeader = ElfW(Phdr);

constexpr unsigned char kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;

/// Whether the file contains `count` entries of `size` bytes at `offset`.
bool holds(std::string_view bytes, uint64_t offset, uint64_t size, uint64_t count = 1) {
  return offset <= bytes.size() && (size == 0 || count <= (bytes.size() - offset) / size);
}

// The reason why the bytes cannot be a plug-in; empty if they may be one.
std::string_view fault_of(std::string_view bytes) {
  FileHeader header;
  if (!bytes.starts_with(ELFMAG)) return "it is not an ELF file";
  if (bytes.size() < sizeof header) return "it ends within its ELF header: it is truncated";
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != kClass) return "it is for machines of another word size";
  if (header.e_type != ET_DYN) return "it is not a shared library";
  if (header.e_phnum > 0 && header.e_phentsize != sizeof(ProgramHeader)) {
    return "its program headers have another size";
  }
  if (!holds(bytes, header.e_phoff, sizeof(ProgramHeader), header.e_phnum)) {
    return "it ends before its program headers: it is truncated";
  }
  if (!holds(bytes, header.e_shoff, header.e_shentsize, header.e_shnum)) {
    return "it ends before its section headers: it is truncated";
  }
  for (size_t i = 0; i < header.e_phnum; ++i) {
    ProgramHeader segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD && !holds(bytes, segment.p_offset, segment.p_filesz)) {
      return "it ends within a segment: it is truncated";
    }
  }
  return "";
}

}  // namespace

Status check_plugin_file(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) {
    return Status(ErrorCode::kFailedPrecondition,
                  fmt::format("{} cannot be loaded: {}", path, file.error().message()));
  }
  const std::string_view fault = fault_of(file->bytes());
  if (fault.empty()) return {};
  return failed_precondition("{} cannot be loaded: {}", path, fault);
}

}  // namespace tenon::backend
