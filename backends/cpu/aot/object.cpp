// Object files as bytes: their symbols, for reports, and archives of them.
#include <elf.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/aot/aot.h"

namespace tenon::cpu {
namespace {

// Reads a T, or nothing beyond the end.
template <class T>
bool read(std::string_view bytes, uint64_t offset, T& value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return true;
}

class ElfObject {
 public:
  explicit ElfObject(std::string_view bytes) : bytes_(bytes) {}

  Status open() {
    const bool is_elf =
        read(bytes_, 0, header_) && std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 &&
        header_.e_ident[EI_CLASS] == ELFCLASS64 && header_.e_ident[EI_DATA] == ELFDATA2LSB;
    if (!is_elf) return unimplemented("only ELF objects of 64 bits can be read");
    for (uint64_t i = 0; i < header_.e_shnum; ++i) {
      Elf64_Shdr section;
      if (!read(bytes_, header_.e_shoff + i * sizeof(section), section)) return broken();
      sections_.push_back(section);
    }
    return {};
  }

  Result<std::vector<AotSymbol>> symbols() const {
    std::vector<AotSymbol> found;
    for (const Elf64_Shdr& table : sections_) {
      if (table.sh_type != SHT_SYMTAB) continue;
      if (table.sh_link >= sections_.size()) return Error(broken());
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        if (!read(bytes_, table.sh_offset + at, symbol)) return Error(broken());
        const auto type = ELF64_ST_TYPE(symbol.st_info);
        if ((type != STT_FUNC && type != STT_OBJECT) || symbol.st_size == 0) continue;
        if (symbol.st_shndx >= sections_.size()) continue;
        const Elf64_Shdr& section = sections_[symbol.st_shndx];
        AotSymbol row;
        row.name = text(sections_[table.sh_link], symbol.st_name);
        if (header_.e_shstrndx < sections_.size()) {
          row.section = text(sections_[header_.e_shstrndx], section.sh_name);
        }
        row.bytes = static_cast<int64_t>(symbol.st_size);
        row.is_code = type == STT_FUNC;
        found.push_back(std::move(row));
      }
    }
    std::ranges::stable_sort(found, std::greater(), &AotSymbol::bytes);
    return found;
  }

  std::vector<std::string> exported() const {
    std::vector<std::string> names;
    for (const Elf64_Shdr& table : sections_) {
      if (table.sh_type != SHT_SYMTAB || table.sh_link >= sections_.size()) continue;
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        if (!read(bytes_, table.sh_offset + at, symbol)) break;
        if (ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL || symbol.st_shndx == SHN_UNDEF) continue;
        names.push_back(text(sections_[table.sh_link], symbol.st_name));
      }
    }
    return names;
  }

 private:
  static Status broken() { return internal_error("the object is cut off"); }

  std::string text(const Elf64_Shdr& strings, uint64_t at) const {
    if (at >= strings.sh_size || strings.sh_offset + at >= bytes_.size()) return "";
    const std::string_view rest = bytes_.substr(strings.sh_offset + at, strings.sh_size - at);
    return std::string(rest.substr(0, rest.find('\0')));
  }

  std::string_view bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
};

std::string big_endian(uint64_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

// A member of an archive in the GNU format, with the fixed header of 60 characters.
std::string member_of(const std::string& name, std::string_view content) {
  std::string member =
      fmt::format("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", name, 0, 0, 0, "644", content.size());
  member += content;
  if (member.size() % 2 != 0) member += '\n';
  return member;
}

}  // namespace

Result<std::vector<AotSymbol>> symbols_of(std::string_view object) {
  ElfObject elf(object);
  TENON_TRY(elf.open());
  return elf.symbols();
}

Result<std::string> archive_of(std::string_view object, const std::string& member) {
  ElfObject elf(object);
  TENON_TRY(elf.open());
  const std::vector<std::string> names = elf.exported();
  const std::string magic = "!<arch>\n";
  std::string strings;
  for (const std::string& name : names) strings += name + '\0';
  const std::string long_names = member_of("//", member + "/\n");
  const size_t index_bytes = 4 + 4 * names.size() + strings.size();
  const size_t at =
      magic.size() + member_of("/", std::string(index_bytes, 0)).size() + long_names.size();
  std::string index = big_endian(names.size());
  for (size_t i = 0; i < names.size(); ++i) index += big_endian(at);
  return magic + member_of("/", index + strings) + long_names + member_of("/0", object);
}

}  // namespace tenon::cpu
