// Locations: loc("f.py":3:4), loc("name"("f.py":3:4)), loc(callsite(… at …)), loc(fused[…]),
// loc(#alias).
#include "hlo/text/parser.h"

namespace tenon::hlo {

Location Parser::location_here() {
  const SourcePosition at = scan_.position(scan_.token_start());
  return file_location(at.file, at.line, at.column);
}

bool Parser::parse_optional_location(RawOp& op) {
  const size_t start = scan_.token_start();
  if (!scan_.accept_keyword("loc")) return true;
  if (!scan_.peek("(")) {
    scan_.set_offset(start);
    return true;
  }
  scan_.set_offset(start);
  return parse_location(op.location);
}

bool Parser::parse_location(Location& out) {
  return scan_.expect_keyword("loc") && scan_.expect('(') && parse_location_body(out) &&
         scan_.expect(')');
}

bool Parser::parse_location_body(Location& out) {
  if (!enter()) return false;
  const LeaveOnReturn leave_on_return{*this};
  if (scan_.accept('#')) {
    // An alias may be used before its definition, so it is a node that is filled in later.
    std::shared_ptr<LocationNode>& node = location_aliases_[std::string(scan_.suffix())];
    if (node == nullptr) node = std::make_shared<LocationNode>();
    out = node;
    return true;
  }
  auto node = std::make_shared<LocationNode>();
  if (scan_.peek() == '"') {
    if (!scan_.string_literal(node->name)) return false;
    if (scan_.accept(':')) {
      int64_t line = 0;
      int64_t column = 0;
      int64_t end_line = 0;
      int64_t end_column = 0;
      if (!scan_.integer(line) || !scan_.expect(':') || !scan_.integer(column)) return false;
      if (scan_.accept_keyword("to")) {
        end_line = line;
        if (!scan_.peek(":") && !scan_.integer(end_line)) return false;
        if (!scan_.expect(':') || !scan_.integer(end_column)) return false;
      }
      node->kind = LocationKind::kFile;
      node->line = static_cast<uint32_t>(line);
      node->column = static_cast<uint32_t>(column);
      node->end_line = static_cast<uint32_t>(end_line);
      node->end_column = static_cast<uint32_t>(end_column);
    } else {
      node->kind = LocationKind::kName;
      if (scan_.accept('(')) {
        node->children.emplace_back();
        if (!parse_location_body(node->children.back()) || !scan_.expect(')')) return false;
      }
    }
  } else {
    const size_t start = scan_.token_start();
    const std::string_view word = scan_.word();
    if (word == "unknown") {
      out = nullptr;
      return true;
    }
    if (word == "callsite") {
      node->kind = LocationKind::kCallSite;
      node->children.resize(2);
      if (!scan_.expect('(') || !parse_location_body(node->children[0]) ||
          !scan_.expect_keyword("at") || !parse_location_body(node->children[1]) ||
          !scan_.expect(')')) {
        return false;
      }
    } else if (word == "fused") {
      node->kind = LocationKind::kFused;
      std::string_view metadata;
      if (scan_.peek("<") && !scan_.balanced(metadata)) return false;
      if (!scan_.expect('[')) return false;
      while (!scan_.peek("]")) {
        node->children.emplace_back();
        if (!parse_location_body(node->children.back())) return false;
        if (!scan_.accept(',')) break;
      }
      if (!scan_.expect(']')) return false;
    } else {
      return scan_.fail_at(start, fmt::format("unknown location '{}'", word));
    }
  }
  out = std::move(node);
  return true;
}

// '#name = loc(…)' after the name and '='.
bool Parser::parse_location_alias_definition(std::string_view name) {
  Location value;
  if (!parse_location(value)) return false;
  std::shared_ptr<LocationNode>& node = location_aliases_[std::string(name)];
  if (node == nullptr) node = std::make_shared<LocationNode>();
  if (value == node) return scan_.fail("location alias '#{}' is itself", name);
  if (value == nullptr) return true;
  if (value->kind == LocationKind::kUnknown) location_copies_.emplace_back(node, value);
  *node = *value;
  return true;
}

}  // namespace tenon::hlo
