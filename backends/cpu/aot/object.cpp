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

struct Elf32 {
  using Header = Elf32_Ehdr;
  using Section = Elf32_Shdr;
  using Symbol = Elf32_Sym;
};
struct Elf64 {
  using Header = Elf64_Ehdr;
  using Section = Elf64_Shdr;
  using Symbol = Elf64_Sym;
};

// A symbol with its name, and whether other objects see it.
struct ElfSymbol {
  AotSymbol row;
  bool is_exported = false;
};

template <class Elf>
class ElfObject {
 public:
  explicit ElfObject(std::string_view bytes) : bytes_(bytes) {}

  Result<std::vector<ElfSymbol>> symbols() {
    if (!read(bytes_, 0, header_)) return Error(broken());
    for (uint64_t i = 0; i < header_.e_shnum; ++i) {
      typename Elf::Section section;
      if (!read(bytes_, header_.e_shoff + i * sizeof(section), section)) return Error(broken());
      sections_.push_back(section);
    }
    std::vector<ElfSymbol> found;
    for (const auto& table : sections_) {
      if (table.sh_type != SHT_SYMTAB) continue;
      if (table.sh_link >= sections_.size()) return Error(broken());
      for (uint64_t at = 0; at + sizeof(Symbol) <= table.sh_size; at += sizeof(Symbol)) {
        Symbol symbol;
        if (!read(bytes_, table.sh_offset + at, symbol)) return Error(broken());
        if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= sections_.size()) continue;
        found.push_back(row_of(symbol, sections_[table.sh_link]));
      }
    }
    return found;
  }

 private:
  using Symbol = typename Elf::Symbol;

  static Status broken() { return internal_error("the object is cut off"); }

  // The names of types and bindings are those of 64 bits: their numbers are the same.
  ElfSymbol row_of(const Symbol& symbol, const typename Elf::Section& names) const {
    ElfSymbol found;
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    found.is_exported = ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL;
    found.row.name = text(names, symbol.st_name);
    if (header_.e_shstrndx < sections_.size()) {
      found.row.section = text(sections_[header_.e_shstrndx], sections_[symbol.st_shndx].sh_name);
    }
    found.row.is_code = type == STT_FUNC;
    const bool has_size = type == STT_FUNC || type == STT_OBJECT;
    found.row.bytes = has_size ? static_cast<int64_t>(symbol.st_size) : 0;
    return found;
  }

  std::string text(const typename Elf::Section& strings, uint64_t at) const {
    if (at >= strings.sh_size || strings.sh_offset + at >= bytes_.size()) return "";
    const std::string_view rest = bytes_.substr(strings.sh_offset + at, strings.sh_size - at);
    return std::string(rest.substr(0, rest.find('\0')));
  }

  std::string_view bytes_;
  typename Elf::Header header_{};
  std::vector<typename Elf::Section> sections_;
};

Result<std::vector<ElfSymbol>> elf_symbols(std::string_view object) {
  const auto byte = [&](size_t i) { return object.size() > i ? object[i] : '\0'; };
  if (object.starts_with(ELFMAG) && byte(EI_DATA) == ELFDATA2LSB) {
    if (byte(EI_CLASS) == ELFCLASS64) return ElfObject<Elf64>(object).symbols();
    if (byte(EI_CLASS) == ELFCLASS32) return ElfObject<Elf32>(object).symbols();
  }
  return unimplemented("only objects in ELF can be read");
}

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
  TENON_ASSIGN(const std::vector<ElfSymbol> symbols, elf_symbols(object));
  std::vector<AotSymbol> rows;
  for (const ElfSymbol& each : symbols) {
    if (each.row.bytes > 0) rows.push_back(each.row);
  }
  std::ranges::stable_sort(rows, std::greater(), &AotSymbol::bytes);
  return rows;
}

Result<std::string> archive_of(std::string_view object, const std::string& member) {
  TENON_ASSIGN(const std::vector<ElfSymbol> symbols, elf_symbols(object));
  std::vector<std::string> names;
  for (const ElfSymbol& each : symbols) {
    if (each.is_exported) names.push_back(each.row.name);
  }
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
