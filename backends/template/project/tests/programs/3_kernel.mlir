// A program of one kernel. `compile`, `load`, `launch`.
// ----- one element
// args: 0=1.5 1=2.25
func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %x, %y : tensor<f32>
  return %0 : tensor<f32>
}
// ----- a vector
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<1000xf32>, %y: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = stablehlo.add %x, %y : tensor<1000xf32>
  return %0 : tensor<1000xf32>
}
// ----- a matrix of no round size
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<37x53xf32>, %y: tensor<37x53xf32>) -> tensor<37x53xf32> {
  %0 = stablehlo.multiply %x, %y : tensor<37x53xf32>
  return %0 : tensor<37x53xf32>
}
// ----- three inputs and two results
// args: 0=random:1 1=random:2 2=random:3
func.func @main(%x: tensor<65xf32>, %y: tensor<65xf32>, %z: tensor<65xi32>) -> (tensor<65xf32>, tensor<65xi32>) {
  %0 = stablehlo.subtract %x, %y : tensor<65xf32>
  %1 = stablehlo.multiply %z, %z : tensor<65xi32>
  return %0, %1 : tensor<65xf32>, tensor<65xi32>
}
// ----- not a number, infinities, zeros of both signs
func.func @main() -> (tensor<6xf32>, tensor<6xf32>) {
  %x = stablehlo.constant dense<[0x7FC00000, 0x7F800000, 0xFF800000, 0.0, -0.0, 1.0e-40]> : tensor<6xf32>
  %b = stablehlo.optimization_barrier %x : tensor<6xf32>
  %0 = stablehlo.negate %b : tensor<6xf32>
  %1 = stablehlo.multiply %b, %0 : tensor<6xf32>
  return %0, %1 : tensor<6xf32>, tensor<6xf32>
}
