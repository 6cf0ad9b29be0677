#include "hlo/import/sharding.h"

#include <gtest/gtest.h>

namespace tenon::hlo {
namespace {

Shardings with_mesh(std::string text) {
  RawOp mesh;
  mesh.name = "sdy.mesh";
  insert(mesh.attributes, "mesh", OpaqueAttr{std::move(text)});
  Shardings shardings;
  shardings.add_mesh(mesh);
  return shardings;
}

TEST(Sharding, SdyAxesOfOneDevicePass) {
  const Shardings s = with_mesh("<[\"a\"=2, \"b\"=1]>");
  for (const char* text :
       {"<@mesh, [{}, {}]>", "<@mesh, [{\"b\"}, {}]>", "<@mesh, [{\"unknown\"}]>", "<@mesh, [{?}]>",
        "<@mesh, []>", "\"unclosed"}) {
    EXPECT_TRUE(s.check_sdy("op", text).ok()) << text;
  }
}

TEST(Sharding, SdyAxesOfMoreAreRefusedByName) {
  const Status status =
      with_mesh("<[\"a\"=2, \"b\"=4]>").check_sdy("stablehlo.add", "<@mesh, [{\"a\"}, {\"b\"}]>");
  EXPECT_EQ(status.code(), ErrorCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "stablehlo.add: sharding <@mesh, [{\"a\"}, {\"b\"}]> needs partitioning over "
            "axis \"a\" of 2 devices; programs run on one device");
}

TEST(Sharding, MeshesOfSpacedText) {
  EXPECT_FALSE(with_mesh("<[\"a\" = 2]>").check_sdy("op", "<@mesh, [{\"a\"}]>").ok());
}

TEST(Sharding, SeveralMeshesGiveTheLargestSize) {
  Shardings s = with_mesh("<[\"a\"=1]>");
  RawOp second;
  insert(second.attributes, "mesh", OpaqueAttr{"<[\"a\"=3]>"});
  s.add_mesh(second);
  EXPECT_FALSE(s.check_sdy("op", "<@mesh, [{\"a\"}]>").ok());
}

TEST(Sharding, MhloOfOneDevicePasses) {
  for (const char* text : {"{replicated}", "{maximal device=0}", "{manual}", "{devices=[1,1]0}",
                           "{devices=[1,1,4]0,1,2,3 last_tile_dim_replicate}",
                           "{devices=[1,2]<=[2] last_tile_dim_replicate}", "", "{devices=["}) {
    EXPECT_TRUE(Shardings::check_mhlo("op", text).ok()) << text;
  }
}

TEST(Sharding, MhloTilingsAreRefused) {
  for (const char* text :
       {"{devices=[2,1]0,1}", "{devices=[1,2]<=[2]}", "{{replicated}, {devices=[2]0,1}}",
        "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
        "{{devices=[1,2]<=[2] last_tile_dim_replicate}, {devices=[1,2]<=[2]}}"}) {
    const Status status = Shardings::check_mhlo("argument 0 of @f", text);
    EXPECT_EQ(status.code(), ErrorCode::kUnimplemented) << text;
    EXPECT_EQ(status.message(),
              fmt::format("argument 0 of @f: sharding {} needs partitioning; programs run "
                          "on one device",
                          text));
  }
}

TEST(Sharding, BothAttributesOfADictionaryAreLookedAt) {
  const Shardings s = with_mesh("<[\"a\"=2]>");
  EXPECT_TRUE(s.check("op", {}).ok());
  EXPECT_FALSE(s.check("op", {{"mhlo.sharding", Attribute("{devices=[2]0,1}")}}).ok());
  EXPECT_FALSE(
      s.check("op", {{"sdy.sharding", OpaqueAttr{"#sdy.sharding<@mesh, [{\"a\"}]>"}}}).ok());
}

}  // namespace
}  // namespace tenon::hlo
