// Every element type: stores, loads and operations. Tenon emulates the types that the device does not compute with.
// ----- i1
// args: 0=true 1=false
func.func @main(%x: tensor<9xi1>, %y: tensor<9xi1>) -> tensor<9xi1> {
  %0 = stablehlo.xor %x, %y : tensor<9xi1>
  return %0 : tensor<9xi1>
}
// ----- EACH
// each: i4 i8 i16 i32 i64 ui4 ui8 ui16 ui32 ui64 f8E4M3FN f8E5M2 bf16 f16 f32 f64 complex<f32> complex<f64>
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<9xEACH>, %y: tensor<9xEACH>) -> (tensor<9xEACH>, tensor<9xEACH>) {
  %0 = stablehlo.add %x, %y : tensor<9xEACH>
  %1 = stablehlo.multiply %0, %x : tensor<9xEACH>
  return %0, %1 : tensor<9xEACH>, tensor<9xEACH>
}
// ----- f32 to EACH
// each: i8 i32 ui64 bf16 f16 f64
// args: 0=random:1
func.func @main(%x: tensor<9xf32>) -> tensor<9xEACH> {
  %0 = stablehlo.convert %x : (tensor<9xf32>) -> tensor<9xEACH>
  return %0 : tensor<9xEACH>
}
// ----- EACH to f32
// each: i8 i32 ui64 bf16 f16 f64
// args: 0=random:1
func.func @main(%x: tensor<9xEACH>) -> tensor<9xf32> {
  %0 = stablehlo.convert %x : (tensor<9xEACH>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}
