"""jax.ffi: functions in C that are registered for the platform, with XLA's headers, and called by programs."""

import ctypes
import pathlib
import shutil
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import is_stood_for

pytestmark = pytest.mark.usefixtures("seen_and_hidden")
ROOT = pathlib.Path(__file__).parents[3]
DECLARED = ROOT / "frameworks/pjrt/c_api/xla_ffi.h"

HANDLERS = r"""
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

static ffi::Error scaled(float scale, ffi::Span<const int64_t> dims, ffi::Buffer<ffi::F32> x,
                         ffi::ResultBuffer<ffi::F32> y) {
  if (x.dimensions().size() != dims.size()) return ffi::Error::InvalidArgument("of another rank");
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = scale * x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Scaled, scaled,
    ffi::Ffi::Bind().Attr<float>("scale").Attr<ffi::Span<const int64_t>>("dims")
        .Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// Increments x where it lies, as the program aliases it with the result.
static ffi::Error increment(ffi::Buffer<ffi::S32> x, ffi::ResultBuffer<ffi::S32> y) {
  if (x.typed_data() != y->typed_data()) return ffi::Error::Internal("not aliased");
  for (size_t i = 0; i < x.element_count(); ++i) ++y->typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Increment, increment,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::S32>>().Ret<ffi::Buffer<ffi::S32>>());

struct Count {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  explicit Count(int64_t n) : calls(n) {}
  int64_t calls;
};
ffi::TypeId Count::id = {};
ffi::TypeInfo Count::info = ffi::MakeTypeInfo<Count>();
static ffi::ErrorOr<std::unique_ptr<Count>> start(int64_t first) {
  return std::make_unique<Count>(first);
}
static ffi::Error count(Count* state, ffi::ResultBuffer<ffi::S32> y) {
  y->typed_data()[0] = static_cast<int32_t>(state->calls++);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Start, start, ffi::Ffi::BindInstantiate().Attr<int64_t>("first"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(Counting, count,
    ffi::Ffi::Bind().Ctx<ffi::State<Count>>().Ret<ffi::Buffer<ffi::S32>>());
extern "C" void* TypeIdOf() { return &Count::id; }
extern "C" void* TypeInfoOf() { return &Count::info; }
"""


def compiler() -> str:
    found = shutil.which("clang++-19") or shutil.which("c++") or shutil.which("g++")
    if found is None:
        pytest.skip("there is no C++ compiler")
    return found


def has_headers() -> None:
    if not (pathlib.Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h").is_file():
        pytest.skip("this jaxlib has no headers")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if is_stood_for():
        return None  # The tests are skipped.
    has_headers()
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "handlers.cpp").write_text(HANDLERS)
    subprocess.run([compiler(), "-std=c++17", "-O1", "-shared", "-fPIC", "-w", f"-I{jax.ffi.include_dir()}",
                    "handlers.cpp", "-o", "handlers.so"], cwd=folder, check=True)
    made = ctypes.CDLL(str(folder / "handlers.so"))
    jax.ffi.register_ffi_target("test_scaled", jax.ffi.pycapsule(made.Scaled), platform="tenon")
    jax.ffi.register_ffi_target("test_increment", jax.ffi.pycapsule(made.Increment), platform="tenon")
    made.TypeIdOf.restype = made.TypeInfoOf.restype = ctypes.c_void_p
    jax.ffi.register_ffi_type("test_count", {"type_id": jax.ffi.pycapsule(made.TypeIdOf()),
                                             "type_info": jax.ffi.pycapsule(made.TypeInfoOf())}, platform="tenon")
    jax.ffi.register_ffi_target("test_counting", {"instantiate": jax.ffi.pycapsule(made.Start),
                                                  "execute": jax.ffi.pycapsule(made.Counting)}, platform="tenon")
    return made


def scaled(x, scale=2.0, dims=None, **options):
    call = jax.ffi.ffi_call("test_scaled", jax.ShapeDtypeStruct(x.shape, x.dtype), **options)
    return call(x, scale=np.float32(scale), dims=np.array(x.shape if dims is None else dims, np.int64))


def test_a_handler_with_attributes(library):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    program = jax.jit(lambda x: scaled(x + 1, 3.0) - 1)
    np.testing.assert_array_equal(program(x), (x + 1) * 3 - 1)
    steps = program.lower(x).compile().cost_analysis()
    assert steps["steps on the host"] == steps["steps"] if steps["steps"] == 1 else steps["steps on the host"] == 1


def test_layouts_and_vmap(library):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    columns = dict(input_layouts=[(1, 0, 2)], output_layouts=(2, 0, 1), vmap_method="sequential")
    y = jax.jit(lambda x: scaled(x, 1.0, input_layouts=[(0, 1, 2)], output_layouts=(0, 1, 2)))(x)
    np.testing.assert_array_equal(y, x)
    # The function copies elements in the order of memory.
    y = jax.jit(lambda x: scaled(x, 1.0, input_layouts=columns["input_layouts"],
                                 output_layouts=columns["output_layouts"]))(x)
    expected = np.empty_like(x)
    expected.transpose(2, 0, 1).flat[:] = x.transpose(1, 0, 2).ravel()
    np.testing.assert_array_equal(y, expected)
    z = jax.jit(jax.vmap(lambda x: scaled(x, 2.0, vmap_method="sequential")))(x)
    np.testing.assert_array_equal(z, 2 * x)


def test_aliases(library):
    def program(x):
        call = jax.ffi.ffi_call("test_increment", jax.ShapeDtypeStruct(x.shape, x.dtype), input_output_aliases={0: 0})
        return call(x), x

    x = np.arange(5, dtype=np.int32)
    y, same = jax.jit(program)(x)
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(same, x)


def test_states(library):
    call = jax.ffi.ffi_call("test_counting", jax.ShapeDtypeStruct((), jnp.int32), has_side_effect=True)
    program = jax.jit(lambda: call(first=np.int64(7)))
    assert [int(program()) for _ in range(3)] == [7, 8, 9]


def test_errors(library):
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: .*of another rank"):
        jax.jit(lambda x: scaled(x, dims=[1, 2, 3, 4]))(np.zeros(2, np.float32)).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="no implementation of the custom call @test_unknown"):
        jax.jit(jax.ffi.ffi_call("test_unknown", jax.ShapeDtypeStruct((), jnp.float32)))()
    with pytest.raises(NotImplementedError, match="test_old.*api_version 0"):
        jax.ffi.register_ffi_target("test_old", jax.ffi.pycapsule(library.Scaled), platform="tenon", api_version=0)


def test_the_declared_interface_is_the_installed_one(tmp_path):
    """Every structure of xla_ffi.h has the members of jaxlib's header, at the same places."""
    import re

    has_headers()
    text = DECLARED.read_text()
    installed = pathlib.Path(f"{jax.ffi.include_dir()}/xla/ffi/api/c_api.h").read_text()
    ours, theirs = (re.search(r"XLA_FFI_API_MINOR\W+(\d+)", each).group(1) for each in (text, installed))
    if ours != theirs:  # Handlers of jaxlib are called and tested all the same: the interface only grows.
        pytest.skip(f"jaxlib has version 0.{theirs} of the interface, this is 0.{ours}")
    bodies = re.findall(r"(?:typedef )?struct (XLA_FFI_\w+) \{(.*?)\n\}", text, re.DOTALL)
    assert len(bodies) > 30
    lines = []
    for name, body in bodies:
        members = re.findall(r"(?:\(\*(\w+)\)\(|(\w+));", re.sub(r"//.*", "", body))
        functions = re.findall(r"\(\*(\w+)\)\(", body)
        names = [second for first, second in members if second] + functions
        names = [each for each in dict.fromkeys(names) if not each.endswith("_")]
        assert names, name
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{each} %zu %zu\\n", offsetof({name}, {each}), sizeof((({name}*)0)->{each}));'
                  for each in names]
    for enumerator in re.findall(r"^\s+(XLA_FFI_\w+) = \d+,", text, re.MULTILINE):
        lines.append(f'printf("{enumerator} %d\\n", (int){enumerator});')
    printed = []
    for number, header in enumerate([str(DECLARED), f"{jax.ffi.include_dir()}/xla/ffi/api/c_api.h"]):
        program = tmp_path / f"layout{number}.cpp"
        program.write_text(f'#include <stdio.h>\n#include <stddef.h>\n#include "{header}"\n'
                           "int main() {\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
        subprocess.run([compiler(), "-w", str(program), "-o", str(program.with_suffix(""))], check=True)
        printed.append(subprocess.run([program.with_suffix("")], check=True, text=True, stdout=subprocess.PIPE).stdout)
    assert printed[0] == printed[1]
    assert "XLA_FFI_CallFrame.attrs" in printed[0] and "XLA_FFI_DataType_F8E8M0FNU 33" in printed[0]
