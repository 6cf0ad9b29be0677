// Calls a model that `tenon aot` compiled from Rust:
//
//     tenon aot lstm.mlir -o out --name lstm
//     rustc -O lstm.rs -L native=out
//
// lstm.mlir takes a sequence f32[16,60] and gives f32[1,60].
#![allow(dead_code)] // The types state what C has, also what is not read here.

use std::ffi::{c_char, c_void};

const INPUTS: usize = 16 * 60;
const OUTPUTS: usize = 60;

/// tenon_aot_array
#[repr(C)]
struct Array {
    name: *const c_char,
    element_type: *const c_char,
    dims: *const i64,
    bytes: u64,
    rank: i32,
    shared: i32,
}

/// tenon_aot_function
#[repr(C)]
struct Function {
    name: *const c_char,
    arguments: *const Array,
    results: *const Array,
    argument_count: i32,
    result_count: i32,
    arena_bytes: u64,
    run: extern "C" fn(*const *mut c_void, *mut c_void, *const c_void) -> i32,
}

/// tenon_aot_model
#[repr(C)]
struct Model {
    abi: u32,
    alignment: u32,
    name: *const c_char,
    version: *const c_char,
    hash: *const c_char,
    target: *const c_char,
    weights_bytes: u64,
    weights_hash: *const c_char,
    functions: *const Function,
    calls: *const *const c_char,
    function_count: i32,
    call_count: i32,
    threads: i32,
    reserved: i32,
}

#[link(name = "lstm", kind = "static")]
extern "C" {
    static lstm_model: Model;
    fn lstm_main(x: *const f32, y: *mut f32, arena: *mut c_void);
}

/// Memory of a multiple of the alignment of models.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

fn main() {
    // SAFETY: the descriptor is constant.
    let function = unsafe { &*lstm_model.functions };
    let mut arena = vec![Line([0; 64]); function.arena_bytes as usize / 64 + 1];
    let x: Vec<f32> = (0..INPUTS).map(|i| (i % 7) as f32 / 7.0 - 0.5).collect();
    let mut y = vec![0f32; OUTPUTS];
    // SAFETY: the arrays have the sizes of the header, and the arena that of the descriptor.
    unsafe { lstm_main(x.as_ptr(), y.as_mut_ptr(), arena.as_mut_ptr().cast()) };
    let text: Vec<String> = y.iter().map(|value| format!("{value:.4}")).collect();
    println!("{}", text.join(" "));
}
