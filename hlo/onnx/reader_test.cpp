#include "hlo/onnx/reader.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "core/base/file.h"
#include "hlo/proto/proto.h"

namespace tenon::hlo {
namespace {

using protozero::pbf_writer;

std::string tensor_bytes(const std::vector<int64_t>& dims, int64_t type,
                         const std::function<void(pbf_writer&)>& data) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_packed_int64(1, dims.begin(), dims.end());
  writer.add_int64(2, type);
  data(writer);
  return bytes;
}

std::string raw_tensor(const std::vector<int64_t>& dims, int64_t type, const std::string& raw) {
  return tensor_bytes(dims, type, [&](pbf_writer& writer) { writer.add_bytes(9, raw); });
}

std::string value_of(const std::string& tensor) {
  const auto read = read_onnx_tensor(tensor);
  return read ? read->shape().to_string() + " " + read->to_string() : read.error().message();
}

TEST(OnnxTensor, ElementsBelowAByteLieInItsBits) {
  EXPECT_EQ(value_of(raw_tensor({3}, 22, "\x1F\x07")), "s4[3] [-1, 1, 7]");
  EXPECT_EQ(value_of(raw_tensor({3}, 21, "\x1F\x07")), "u4[3] [15, 1, 7]");
  EXPECT_EQ(value_of(raw_tensor({4}, 26, "\x4D")), "s2[4] [1, -1, 0, 1]");
}

TEST(OnnxTensor, NumbersStandForBitsOfNarrowTypes) {
  const auto ints = [](std::vector<int32_t> values) {
    return [values](pbf_writer& w) { w.add_packed_int32(5, values.begin(), values.end()); };
  };
  EXPECT_EQ(value_of(tensor_bytes({2}, 10, ints({0x3C00, 0xC000}))), "f16[2] [1, -2]");
  EXPECT_EQ(value_of(tensor_bytes({2}, 9, ints({1, 0}))), "pred[2] [true, false]");
  EXPECT_EQ(value_of(tensor_bytes({}, 6, ints({-7}))), "s32[] -7");
  const auto floats = [](pbf_writer& w) {
    const std::vector<float> values = {1.5F, -2};
    w.add_packed_float(4, values.begin(), values.end());
  };
  EXPECT_EQ(value_of(tensor_bytes({2}, 1, floats)), "f32[2] [1.5, -2]");
  EXPECT_EQ(value_of(tensor_bytes({1}, 14, floats)), "c64[1] [(1.5, -2)]");
}

TEST(OnnxTensor, WrongSizesAndTypesAreErrors) {
  EXPECT_EQ(value_of(raw_tensor({2}, 1, "abc")), "it has 3 bytes for 2 elements of f32");
  EXPECT_EQ(value_of(raw_tensor({2}, 99, "abc")), "unknown element type 99");
  EXPECT_EQ(value_of(raw_tensor({1}, 8, "")), "tensors of strings are not supported");
  EXPECT_FALSE(read_onnx_tensor(raw_tensor({INT64_MAX, INT64_MAX}, 1, "")));
  EXPECT_FALSE(read_onnx_tensor(raw_tensor({-1}, 1, "")));
  EXPECT_FALSE(read_onnx_tensor(raw_tensor({int64_t{1} << 40}, 1, "")));
}

std::string text_field(uint32_t tag, const std::string& value) {
  std::string bytes;
  pbf_writer(bytes).add_message(tag, value);
  return bytes;
}

std::string external_tensor(const std::string& location, const std::string& offset) {
  return tensor_bytes({2}, 3, [&](pbf_writer& writer) {
    for (const auto& [key, value] :
         {std::pair<std::string, std::string>("location", location), {"offset", offset}}) {
      std::string entry;
      pbf_writer pair(entry);
      pair.add_string(1, key);
      pair.add_string(2, value);
      writer.add_message(13, entry);
    }
    writer.add_int64(14, 1);
  });
}

std::string model_with(const std::string& graph) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_int64(1, 8);
  writer.add_message(7, graph);
  std::string opset;
  pbf_writer(opset).add_int64(2, 18);
  writer.add_message(8, opset);
  return bytes;
}

std::string external_outcome(const std::string& folder, const std::string& location,
                             const std::string& offset = "1") {
  const auto model =
      read_onnx(model_with(text_field(5, external_tensor(location, offset))), folder);
  return model ? model->graph.initializers.at(0).second.to_string() : model.error().message();
}

TEST(OnnxExternalData, AreReadFromTheFolderOfTheModelAlone) {
  const auto folder = TemporaryFolder::create("onnx");
  ASSERT_TRUE(folder);
  ASSERT_TRUE(write_file(folder->file("data.bin"), "\x01\x02\x03").ok());
  EXPECT_EQ(external_outcome(folder->path(), "data.bin"), "[2, 3]");
  EXPECT_EQ(external_outcome(folder->path(), "../data.bin"),
            "tensor '': its data would be in '../data.bin', outside the model's folder");
  EXPECT_NE(external_outcome(folder->path(), folder->file("data.bin")).find("outside"),
            std::string::npos);
  EXPECT_NE(external_outcome(folder->path(), "absent").find("there is no file"), std::string::npos);
  EXPECT_NE(external_outcome(folder->path(), "data.bin", "2").find("end at 2 + 2"),
            std::string::npos);
  EXPECT_NE(external_outcome(folder->path(), "data.bin", "x").find("offset is 'x'"),
            std::string::npos);
  EXPECT_NE(external_outcome("", "data.bin").find("the model has no folder"), std::string::npos);
}

TEST(OnnxModel, IsKnownByItsFields) {
  EXPECT_TRUE(is_onnx(model_with("")));
  EXPECT_FALSE(is_hlo_proto(model_with("")));
  EXPECT_FALSE(is_onnx("func.func @main() { return }"));
  EXPECT_FALSE(is_onnx(""));
  EXPECT_FALSE(is_onnx("ML\xEFR"));
}

TEST(OnnxModel, GraphsThatAreNestedTooDeeplyAreAnError) {
  std::string graph;
  for (int depth = 0; depth < 100; ++depth) {
    std::string attribute, node;
    pbf_writer(attribute).add_message(6, graph);
    pbf_writer(node).add_message(5, attribute);
    graph = text_field(1, node);
  }
  const auto model = read_onnx(model_with(graph), "");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message(), "graphs are nested too deeply");
}

TEST(OnnxModel, DamagedBytesAreErrors) {
  std::string node = text_field(1, "x") + text_field(2, "y") + text_field(4, "Relu");
  const std::string graph = text_field(1, node) + text_field(5, raw_tensor({2}, 1, "12345678"));
  const std::string bytes = model_with(graph);
  ASSERT_TRUE(read_onnx(bytes, ""));
  for (size_t size = 0; size < bytes.size(); ++size) {
    static_cast<void>(read_onnx(bytes.substr(0, size), ""));
    std::string changed = bytes;
    changed[size] = static_cast<char>(changed[size] ^ 0x55);
    static_cast<void>(read_onnx(changed, ""));
  }
  EXPECT_EQ(read_onnx("\x08", "").error().code(), ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace tenon::hlo
