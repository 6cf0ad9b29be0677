"func.func"() ({ ^bb0(%a: tensor<f32>): }) {sym_name = "f", function_type = () -> ()} : () -> ()
