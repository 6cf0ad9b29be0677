// Copies of bytes to the device and back. `allocate`, `copy`, `record`, `await`.
// ----- one element
// moves
// args: 0=1.5
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
// ----- three bytes
// moves
// args: 0=random:1
func.func @main(%x: tensor<3xi8>) -> tensor<3xi8> {
  return %x : tensor<3xi8>
}
// ----- more than a piece of a copy
// moves
// args: 0=random:1
func.func @main(%x: tensor<263001xf32>) -> tensor<263001xf32> {
  return %x : tensor<263001xf32>
}
// ----- several, the other way round
// moves
// args: 0=random:1 1=random:2 2=random:3
func.func @main(%x: tensor<5xf32>, %y: tensor<2x3xi32>, %z: tensor<7xi8>)
    -> (tensor<7xi8>, tensor<2x3xi32>, tensor<5xf32>) {
  return %z, %y, %x : tensor<7xi8>, tensor<2x3xi32>, tensor<5xf32>
}
// ----- a constant
// moves
func.func @main() -> tensor<4xi32> {
  %0 = stablehlo.constant dense<[1, -2, 3, 2147483647]> : tensor<4xi32>
  return %0 : tensor<4xi32>
}
// ----- nothing at all
// moves
// args: 0=random:1
func.func @main(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  return %x : tensor<0x4xf32>
}
