#loc1 = loc("f.py":1:2)
module @m attributes {a = 1 : i32, b = [1, 2.5 : f32, "s", @f, unit], c = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>} {
  sdy.mesh @mesh = <["x"=1]>
  func.func private @f(%a: tensor<2xf32> {jax.x = true} loc(#loc1)) -> (tensor<2xf32> {k = array<i64: 1, 2>}) {
    %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<2xf32>
    return %0 : tensor<2xf32> loc(callsite("g"("f.py":3:4 to :9) at fused[#loc1, unknown]))
  }
  func.func public @main(%arg0: tensor<4x2xf32>, %arg1: tensor<4xi32>, %t: !stablehlo.token) -> tensor<4x2xf32> {
    %c = stablehlo.constant dense<"0x0000803F000000400000404000008040"> : tensor<4xf32>
    %z = stablehlo.constant dense<(1.0,-2.0)> : tensor<complex<f64>>
    %q = stablehlo.constant() <{value = dense<1> : tensor<2xi8>}> : () -> tensor<2x!quant.uniform<i8:f32:0, {0.1:-30,0.5}>>
    %i = stablehlo.iota dim = 0 : tensor<4x2xi32>
    %b = stablehlo.broadcast_in_dim %c, dims = [0] : (tensor<4xf32>) -> tensor<4x2xf32>
    %w:2 = stablehlo.while(%x = %arg0, %n = %c) : tensor<4x2xf32>, tensor<4xf32> attributes {k}
     cond { %p = stablehlo.constant dense<false> : tensor<i1> stablehlo.return %p : tensor<i1> }
     do { stablehlo.return %x, %n : tensor<4x2xf32>, tensor<4xf32> }
    %s:2 = "stablehlo.sort"(%arg0, %i) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>, %li: tensor<i32>, %ri: tensor<i32>):
      %lt = stablehlo.compare  LT, %l, %r,  TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    }) : (tensor<4x2xf32>, tensor<4x2xi32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
    %k:2 = chlo.top_k(%arg0, k = 1) : tensor<4x2xf32> -> (tensor<4x1xf32>, tensor<4x1xi32>)
    return %s#0 : tensor<4x2xf32>
  }
}
