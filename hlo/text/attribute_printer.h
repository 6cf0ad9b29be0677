// The text of attributes.
#pragma once

#include <string>

#include "hlo/ops/ops.h"
#include "hlo/text/printer.h"

namespace tenon::hlo {

std::string type_text(const Type& type, TextForm form);
/// The text of any attribute; reading it without a declared kind gives the same attribute.
std::string attribute_text(const Attribute& value, TextForm form);
/// The text of a declared attribute: short in HLO text; in StableHLO text with the declared
/// spelling.
std::string attribute_text(const AttrSpec& spec, const Attribute& value, TextForm form);
std::string dict_text(const Dict& dict, TextForm form);
/// "[1, 2]"
std::string list_text(const I64s& values);
std::string quoted(std::string_view text);
/// "@name", quoted if necessary.
std::string symbol_text(std::string_view name);
/// "dense<…>" without its type.
std::string dense_text(const DenseAttr& dense, TextForm form);
/// "[b, 0, f]x[0, i, o]->[b, 0, f]"
std::string conv_dims_text(const ConvDims& dims);
std::string dot_algorithm_text(const DotAlgorithm& algorithm);

}  // namespace tenon::hlo
