// The order of work: each launch sees the results of the earlier ones; events report completion. `record`, `wait`, `await`, `release`.
// ----- a chain that no fusion joins
// args: 0=random:1
func.func @main(%x: tensor<64x64xi32>) -> tensor<64x64xi32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0] : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
  %2 = stablehlo.dot_general %1, %0, contracting_dims = [1] x [0] : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
  %3 = stablehlo.dot_general %2, %1, contracting_dims = [1] x [0] : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
  return %3 : tensor<64x64xi32>
}
// ----- a loop of many launches
// args: 0=random:1
func.func @main(%x: tensor<48x48xi32>) -> (tensor<i32>, tensor<48x48xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<40> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<48x48xi32>
   cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %p = stablehlo.dot_general %y, %x, contracting_dims = [1] x [0] : (tensor<48x48xi32>, tensor<48x48xi32>) -> tensor<48x48xi32>
    %q = stablehlo.transpose %p, dims = [1, 0] : (tensor<48x48xi32>) -> tensor<48x48xi32>
    stablehlo.return %next, %q : tensor<i32>, tensor<48x48xi32>
  }
  return %0#0, %0#1 : tensor<i32>, tensor<48x48xi32>
}
// ----- a loop until the data says so
// args: 0=3
func.func @main(%x: tensor<32x32xi32>) -> tensor<32x32xi32> {
  %most = stablehlo.constant dense<1000000> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.while(%y = %x) : tensor<32x32xi32>
   cond {
    %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x32xi32>, tensor<i32>) -> tensor<i32>
    %c = stablehlo.compare LT, %s, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %p = stablehlo.dot_general %y, %x, contracting_dims = [1] x [0] : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi32>
    stablehlo.return %p : tensor<32x32xi32>
  }
  return %0 : tensor<32x32xi32>
}
// ----- one branch of two
// args: 0=true 1=random:1
func.func @main(%p: tensor<i1>, %x: tensor<16x16xi32>) -> tensor<16x16xi32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
    stablehlo.return %1 : tensor<16x16xi32>
  }, {
    stablehlo.return %x : tensor<16x16xi32>
  }) : (tensor<i1>) -> tensor<16x16xi32>
  return %0 : tensor<16x16xi32>
}
