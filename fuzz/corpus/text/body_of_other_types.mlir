"func.func"() ({
^bb0(%a: tensor<4xf32>):
  "func.return"(%a) : (tensor<4xf32>) -> ()
}) {sym_name = "f", function_type = (tensor<i32>) -> tensor<i32>} : () -> ()
