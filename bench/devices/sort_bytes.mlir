func.func @main(%x: tensor<256x4096xi8>) -> tensor<256x4096xi8> {
  %y = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i8>, %b: tensor<i8>):
      %p = stablehlo.compare LT, %a, %b : (tensor<i8>, tensor<i8>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
  }) : (tensor<256x4096xi8>) -> tensor<256x4096xi8>
  return %y : tensor<256x4096xi8>
}
