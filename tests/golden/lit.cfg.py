"""lit: golden tests are .mlir files whose RUN lines pipe the output of `tenon` into FileCheck."""

import os

import lit.formats

config.name = "tenon"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
build = lit_config.params.get("TENON_BUILD", os.environ.get("TENON_BUILD", "build"))
config.test_exec_root = os.path.join(build, "golden")
config.substitutions.append((r"\btenon ", os.path.join(build, "tenon") + " "))  # Not in the name of a composite.
config.substitutions.append(("FileCheck", "FileCheck-19"))
