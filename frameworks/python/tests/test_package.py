"""The package as its users read it: help, types."""

import pathlib
import subprocess
import sys

import tenon


def test_every_public_name_has_a_docstring():
    for name in tenon.__all__:
        public = getattr(tenon, name)
        assert public.__doc__, name
        for member, value in vars(public).items() if isinstance(public, type) else ():
            if not member.startswith("_"):
                assert value.__doc__, f"{name}.{member}"


def test_stubs_are_those_of_the_module(tmp_path):
    made = tmp_path / "_native.pyi"
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "tenon._native", "-o", made], check=True, timeout=120)
    assert made.read_text() == pathlib.Path(tenon.__file__).with_name("_native.pyi").read_text()
