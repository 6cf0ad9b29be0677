#include "conformance/cases/interface/kernel_texts.h"

namespace tenon::conformance {
namespace {

constexpr KernelText kTexts[] = {
    {"K1/uniform_if", R"(
kernel @k(%x: in s32[8,16], %y: out s32[8,16]) index s32 grid(%i: 8) {
  %r = rem %i, 2 : s32
  %p = eq %r, 0 : s32
  %f = if %p : s32 { yield 3 } else { yield 5 }
  lanes(%j: 16) {
    %v = load %x[%i, %j] : s32
    %w = mul %v, %f : s32
    store %w, %y[%i, %j] : s32
  }
})"},
    {"K1/statements_before_lanes", R"(
kernel @k(%x: in s32[8,16], %y: out s32[8,16]) index s32 grid(%i: 8) {
  %a = load %x[%i, 0] : s32
  %b = load %x[%i, 15] : s32
  %c = sub %a, %b : s32
  lanes(%j: 16) {
    %v = load %x[%i, %j] : s32
    %w = add %v, %c : s32
    store %w, %y[%i, %j] : s32
  }
})"},
    {"K2/scratch_between_lanes", R"(
kernel @k(%x: in s32[4,37], %y: out s32[4,37]) index s32 grid(%i: 4) {
  scratch %s : s32[37]
  lanes(%j: 37) {
    %v = load %x[%i, %j] : s32
    %w = mul %v, 3 : s32
    store %w, %s[%j] : s32
  }
  lanes(%j: 37) {
    %k = sub 36, %j : s32
    %v = load %s[%k] : s32
    store %v, %y[%i, %j] : s32
  }
})"},
    {"K2/scratch_in_a_loop", R"(
kernel @k(%x: in s32[3,16], %y: out s32[3,16]) index s32 grid(%i: 3) {
  scratch %s : s32[16]
  scratch %t : s32[16]
  lanes(%j: 16) {
    %v = load %x[%i, %j] : s32
    store %v, %s[%j] : s32
  }
  for %n = (0, 5, 1) {
    lanes(%j: 16) {
      %j1 = add %j, 1 : s32
      %k = rem %j1, 16 : s32
      %a = load %s[%j] : s32
      %b = load %s[%k] : s32
      %c = mul %a, 5 : s32
      %d = add %c, %b : s32
      store %d, %t[%j] : s32
    }
    lanes(%j: 16) {
      %a = load %t[%j] : s32
      store %a, %s[%j] : s32
    }
  }
  lanes(%j: 16) {
    %a = load %s[%j] : s32
    store %a, %y[%i, %j] : s32
  }
})"},
    {"K2/inout_buffer", R"(
kernel @k(%x: inout s32[4,32]) index s32 grid(%i: 4) {
  lanes(%j: 32) {
    %v = load %x[%i, %j] : s32
    %w = add %v, 7 : s32
    store %w, %x[%i, %j] : s32
  }
  lanes(%j: 32) {
    %v = load %x[%i, %j] : s32
    %w = mul %v, %v : s32
    store %w, %x[%i, %j] : s32
  }
})"},
    {"K3/lanes_of_three_dimensions", R"(
kernel @k(%x: in s32[2,3,5,7], %y: out s32[2,7,5,3]) index s32 grid(%i: 2) {
  lanes(%a: 3, %b: 5, %c: 7) {
    %v = load %x[%i, %a, %b, %c] : s32
    %w = add %v, %b : s32
    store %w, %y[%i, %c, %b, %a] : s32
  }
})"},
    {"K3/grid_of_three_dimensions", R"(
kernel @k(%x: in s32[2,3,5,7], %y: out s32[2,3,5,7]) index s32 grid(%i: 2, %a: 3, %b: 5) {
  lanes(%c: 7) {
    %v = load %x[%i, %a, %b, %c] : s32
    %w = mul %v, %a : s32
    %u = sub %w, %b : s32
    store %u, %y[%i, %a, %b, %c] : s32
  }
})"},
    {"K3/grid_without_dimensions", R"(
kernel @k(%x: in s32[9], %y: out s32[9]) index s32 grid() {
  lanes(%c: 9) {
    %v = load %x[%c] : s32
    %w = neg %v : s32
    store %w, %y[%c] : s32
  }
})"},
    {"K5/reduce_lanes", R"(
kernel @k(%x: in s32[5,100], %y: out s32[5]) index s32 grid(%i: 5) {
  %s = reduce lanes(%j: 100) init(11) : s32 commutative {
    %v = load %x[%i, %j] : s32
    yield %v
  } combine(%a, %b) {
    %c = add %a, %b : s32
    yield %c
  }
  store %s, %y[%i] : s32
})"},
    {"K5/reduce_keeps_order", R"(
kernel @k(%x: in s32[5,61], %y: out s32[5,2]) index s32 grid(%i: 5) {
  %m, %c = reduce lanes(%j: 61) init(1, 0) : s32, s32 {
    %v = load %x[%i, %j] : s32
    yield 3, %v
  } combine(%m0, %c0, %m1, %c1) {
    %m2 = mul %m0, %m1 : s32
    %t = mul %m1, %c0 : s32
    %c2 = add %t, %c1 : s32
    yield %m2, %c2
  }
  store %m, %y[%i, 0] : s32
  store %c, %y[%i, 1] : s32
})"},
    {"K5/reduce_serial", R"(
kernel @k(%x: in s32[5,61], %y: out s32[5]) index s32 grid(%i: 1) {
  lanes(%j: 5) {
    %s = reduce serial(%k: 61) init(0) : s32 {
      %v = load %x[%j, %k] : s32
      yield %v
    } combine(%a, %b) {
      %m = mul %a, 3 : s32
      %c = max %m, %b : s32
      yield %c
    }
    store %s, %y[%j] : s32
  }
})"},
    {"K5/scan_lanes", R"(
kernel @k(%x: in s32[4,50], %y: out s32[4,50], %z: out s32[4]) index s32 grid(%i: 4) {
  %t = scan lanes(%j: 50) init(5) : s32 {
    %v = load %x[%i, %j] : s32
    yield %v
  } combine(%a, %b) {
    %c = add %a, %b : s32
    yield %c
  } each(%j, %p) {
    store %p, %y[%i, %j] : s32
  }
  store %t, %z[%i] : s32
})"},
    {"K5/scan_keeps_order", R"(
kernel @k(%x: in s32[4,30], %y: out s32[4,30]) index s32 grid(%i: 4) {
  %m, %c = scan lanes(%j: 30) init(1, 0) : s32, s32 {
    %v = load %x[%i, %j] : s32
    yield 3, %v
  } combine(%m0, %c0, %m1, %c1) {
    %m2 = mul %m0, %m1 : s32
    %t = mul %m1, %c0 : s32
    %c2 = add %t, %c1 : s32
    yield %m2, %c2
  } each(%j, %pm, %pc) {
    %s = sub %pc, %pm : s32
    store %s, %y[%i, %j] : s32
  }
})"},
    {"K5/scan_serial", R"(
kernel @k(%x: in s32[6,25], %y: out s32[6,25]) index s32 grid(%i: 6) {
  %t = scan serial(%j: 25) init(-3) : s32 {
    %v = load %x[%i, %j] : s32
    yield %v
  } combine(%a, %b) {
    %m = mul %a, 5 : s32
    %c = sub %m, %b : s32
    yield %c
  } each(%j, %p) {
    store %p, %y[%i, %j] : s32
  }
})"},
    {"K6/atomics", R"(
kernel @k(%x: in s32[7,64], %y: inout s32[6]) index s32 grid(%i: 7) {
  lanes(%j: 64) {
    %v = load %x[%i, %j] : s32
    %b = and %v, 3 : s32
    atomic add %v, %y[%b] : s32
  }
})"},
    {"K6/atomic_kinds", R"(
kernel @k(%x: in s32[7,64], %y: inout s32[5]) index s32 grid(%i: 7) {
  lanes(%j: 64) {
    %v = load %x[%i, %j] : s32
    atomic min %v, %y[0] : s32
    atomic max %v, %y[1] : s32
    atomic and %v, %y[2] : s32
    atomic or %v, %y[3] : s32
    atomic xor %v, %y[4] : s32
  }
})"},
    {"K7/division_by_zero", R"(
kernel @k(%x: in s32[64], %y: out s32[64], %z: out s32[64]) index s32 grid() {
  lanes(%j: 64) {
    %v = load %x[%j] : s32
    %d = rem %v, 3 : s32
    %q = div %v, %d : s32
    %r = rem %v, %d : s32
    store %q, %y[%j] : s32
    store %r, %z[%j] : s32
  }
})"},
    {"K8/mul_then_add_rounds_twice", R"(
kernel @k(%x: in f32[256], %y: in f32[256], %z: in f32[256], %r: out f32[256], %s: out f32[256]) index s32 grid(%i: 4) {
  lanes(%j: 64) {
    %b = mul %i, 64 : s32
    %k = add %b, %j : s32
    %u = load %x[%k] : f32
    %v = load %y[%k] : f32
    %w = load %z[%k] : f32
    %m = mul %u, %v : f32
    %a = add %m, %w : f32
    %f = fma %u, %v, %w : f32
    store %a, %r[%k] : f32
    store %f, %s[%k] : f32
  }
})"},
    {"K8/product_of_differences", R"(
kernel @k(%x: in f64[256], %y: in f64[256], %r: out f64[256]) index s32 grid(%i: 4) {
  lanes(%j: 64) {
    %b = mul %i, 64 : s32
    %k = add %b, %j : s32
    %u = load %x[%k] : f64
    %v = load %y[%k] : f64
    %m = mul %u, %u : f64
    %n = mul %v, %v : f64
    %a = sub %m, %n : f64
    store %a, %r[%k] : f64
  }
})"},
    {"K9/packed_u4", R"(
kernel @k(%x: packed in u4[40], %y: out s32[40]) index s32 grid() {
  lanes(%j: 40) {
    %v = load %x[%j] : u4
    %w = convert %v : u4 -> s32
    store %w, %y[%j] : s32
  }
})"},
    {"K9/packed_s2", R"(
kernel @k(%x: packed in s2[40], %y: out s32[40]) index s32 grid() {
  lanes(%j: 40) {
    %v = load %x[%j] : s2
    %w = convert %v : s2 -> s32
    store %w, %y[%j] : s32
  }
})"},
    {"K10/index_s64", R"(
kernel @k(%x: in s32[4,32], %y: out s32[4,32]) index s64 grid(%i: 4) {
  lanes(%j: 32) {
    %k = sub 31, %j : s64
    %v = load %x[%i, %k] : s32
    store %v, %y[%i, %j] : s32
  }
})"},
    {"statement/for_carry", R"(
kernel @k(%x: in s32[16,9], %y: out s32[16]) index s32 grid() {
  lanes(%j: 16) {
    %r, %q = for %k = (1, 9, 2) carry(%a = 0, %b = 1) : s32, s32 {
      %v = load %x[%j, %k] : s32
      %c = add %a, %v : s32
      %d = mul %b, %c : s32
      yield %d, %c
    }
    %s = sub %r, %q : s32
    store %s, %y[%j] : s32
  }
})"},
    {"statement/for_of_no_turn", R"(
kernel @k(%x: in s32[16], %y: out s32[16]) index s32 grid() {
  lanes(%j: 16) {
    %v = load %x[%j] : s32
    %r = for %k = (5, 5, 1) carry(%a = %v) : s32 {
      yield 0
    }
    store %r, %y[%j] : s32
  }
})"},
    {"statement/while", R"(
kernel @k(%x: in s32[64], %y: out s32[64]) index s32 grid() {
  lanes(%j: 64) {
    %v = load %x[%j] : s32
    %w = and %v, 1023 : s32
    %n, %c = while(%s = %w, %t = 0) : s32, s32 {
      %p = gt %s, 1 : s32
      %q = lt %t, 200 : s32
      %go = and %p, %q : pred
      yield %go
    } do(%s, %t) {
      %o = and %s, 1 : s32
      %odd = eq %o, 1 : s32
      %m = mul %s, 3 : s32
      %m1 = add %m, 1 : s32
      %h = shr %s, 1 : s32
      %u = select %odd, %m1, %h : s32
      %t1 = add %t, 1 : s32
      yield %u, %t1
    }
    %r = add %n, %c : s32
    store %r, %y[%j] : s32
  }
})"},
    {"statement/if_in_lanes", R"(
kernel @k(%x: in s32[64], %y: out s32[64]) index s32 grid() {
  lanes(%j: 64) {
    %v = load %x[%j] : s32
    %p = lt %v, 0 : s32
    %r, %s = if %p : s32, s32 {
      %n = neg %v : s32
      yield %n, 1
    } else {
      %m = mul %v, 2 : s32
      yield %m, 0
    }
    %t = add %r, %s : s32
    store %t, %y[%j] : s32
  }
})"},
    {"statement/copy_pad_clip", R"(
kernel @k(%x: in s32[20,14], %y: out s32[14,20]) index s32 grid(%i: 3, %j: 2) {
  scratch %t : s32[8,9]
  %r = mul %i, 8 : s32
  %c = mul %j, 8 : s32
  copy box(8, 8) %t[0, 0] by(0, 1) = %x[%r, %c] by(0, 1) pad -1
  copy box(8, 8) %y[%c, %r] by(1, 0) = %t[0, 0] by(0, 1) clip
})"},
    {"statement/copy_pads", R"(
kernel @k(%x: in s32[5,6], %y: out s32[8,9]) index s32 grid() {
  scratch %t : s32[8,9]
  copy box(8, 9) %t[0, 0] by(0, 1) = %x[0, 0] by(0, 1) pad -7
  copy box(8, 9) %y[0, 0] by(0, 1) = %t[0, 0] by(0, 1)
})"},
    {"statement/contract_transposed", R"(
kernel @k(%x: in s32[12,12], %y: in s32[12,12], %z: out s32[12,12]) index s32 grid() {
  scratch %a : s32[12,12]
  scratch %b : s32[12,12]
  scratch %c : s32[12,12]
  copy box(12, 12) %a[0, 0] by(0, 1) = %x[0, 0] by(0, 1)
  copy box(12, 12) %b[0, 0] by(0, 1) = %y[0, 0] by(0, 1)
  lanes(%p: 12, %q: 12) {
    store -5, %c[%p, %q] : s32
  }
  contract box(12, 12, 12) %c[0, 0] += %a[0, 0] * %b[0, 0] transpose a
  contract box(12, 12, 12) %c[0, 0] += %b[0, 0] * %a[0, 0] transpose b
  copy box(12, 12) %z[0, 0] by(0, 1) = %c[0, 0] by(0, 1)
})"},
    {"statement/contract", R"(
kernel @k(%x: in s32[16,12], %y: in s32[12,16], %z: out s32[16,16]) index s32 grid() {
  scratch %a : s32[16,12]
  scratch %b : s32[12,16]
  scratch %c : s32[16,16]
  copy box(16, 12) %a[0, 0] by(0, 1) = %x[0, 0] by(0, 1)
  copy box(12, 16) %b[0, 0] by(0, 1) = %y[0, 0] by(0, 1)
  lanes(%p: 16, %q: 16) {
    store 2, %c[%p, %q] : s32
  }
  contract box(16, 16, 12) %c[0, 0] += %a[0, 0] * %b[0, 0]
  copy box(16, 16) %z[0, 0] by(0, 1) = %c[0, 0] by(0, 1)
})"},
    {"statement/private_memory", R"(
kernel @k(%x: in s32[16,4], %y: out s32[16]) index s32 grid() {
  private %p : s32[16,4] per lanes 1
  lanes(%j: 16) {
    for %k = (0, 4, 1) {
      %v = load %x[%j, %k] : s32
      store %v, %p[%j, %k] : s32
    }
  }
  lanes(%j: 16) {
    %s = for %k = (0, 4, 1) carry(%a = 0) : s32 {
      %v = load %p[%j, %k] : s32
      %m = mul %a, 7 : s32
      %b = add %m, %v : s32
      yield %b
    }
    store %s, %y[%j] : s32
  }
})"},
    {"statement/strided_buffer", R"(
kernel @k(%x: in s32[8,8]{1,8}, %y: out s32[8,8]) index s32 grid(%i: 8) {
  lanes(%j: 8) {
    %v = load %x[%i, %j] : s32
    store %v, %y[%i, %j] : s32
  }
})"},
};

}  // namespace

std::span<const KernelText> kernel_texts() { return kTexts; }

}  // namespace tenon::conformance
