#include "hlo/types/location.h"

#include "hlo/types/op_location.h"

namespace tenon::hlo {

Location file_location(std::string file, uint32_t line, uint32_t column) {
  auto node = std::make_shared<LocationNode>();
  node->kind = LocationKind::kFile;
  node->name = std::move(file);
  node->line = line;
  node->column = column;
  return node;
}

Location function_location(std::string_view file, std::string_view function) {
  auto node = std::make_shared<LocationNode>();
  node->name = fmt::format("{}: @{}", file, function);
  return node;
}

// The line of such a node is the op's number; its only child has the function's name.
Location op_location(Location function, uint32_t number) {
  auto node = std::make_shared<LocationNode>();
  node->line = number;
  node->children.push_back(std::move(function));
  return node;
}

SourcePosition position_of(const Location& location) {
  const LocationNode* node = location.get();
  while (node != nullptr && node->kind != LocationKind::kFile) {
    if (node->kind == LocationKind::kUnknown && !node->children.empty()) {
      return {fmt::format("{}: op {}", node->children.front()->name, node->line), 0, 0};
    }
    node = node->children.empty() ? nullptr : node->children.front().get();
  }
  if (node == nullptr) return {};
  return {node->name, node->line, node->column};
}

namespace {

void append_quoted(std::string_view text, std::string& out) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

// Nodes are shared, so the text of a small graph may be unboundedly long: beyond this size a
// location prints as unknown.
constexpr size_t kMaxText = 1 << 16;

void append(const Location& location, std::string& out);

void append_children(const LocationNode& node, std::string_view separator, std::string& out) {
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (i != 0) out += separator;
    append(node.children[i], out);
  }
}

void append(const Location& location, std::string& out) {
  if (location == nullptr || out.size() > kMaxText) {
    out += "unknown";
    return;
  }
  switch (location->kind) {
    case LocationKind::kUnknown:
      out += "unknown";
      break;
    case LocationKind::kFile:
      append_quoted(location->name, out);
      out += fmt::format(":{}:{}", location->line, location->column);
      if (location->end_line != 0) {
        out += fmt::format(" to {}:{}", location->end_line, location->end_column);
      }
      break;
    case LocationKind::kName:
      append_quoted(location->name, out);
      if (!location->children.empty() && location->children[0] != nullptr) {
        out += '(';
        append_children(*location, "", out);
        out += ')';
      }
      break;
    case LocationKind::kCallSite:
      out += "callsite(";
      append_children(*location, " at ", out);
      out += ')';
      break;
    case LocationKind::kFused:
      out += "fused[";
      append_children(*location, ", ", out);
      out += ']';
      break;
  }
}

}  // namespace

std::string location_to_string(const Location& location) {
  std::string out;
  append(location, out);
  return out;
}

}  // namespace tenon::hlo
