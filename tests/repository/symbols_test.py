#!/usr/bin/env python3
"""Checks the exports and imports of the shared libraries: a plug-in exports one function and no LLVM, so that it can share a
process with any LLVM and any Tenon of the host. Prints PASS and FAIL lines.

    symbols_test.py BUILD
"""

import pathlib
import subprocess
import sys

EXPORTED = {"backends/libtenon_cpu.so": "tenon_plugin", "backends/libtenon_gpu.so": "tenon_plugin",
            "backends/libtenon_gpu_sim.so": "tenon_plugin", "backends/libtenon_template.so": "tenon_plugin",
            "backends/libtenon_template_c.so": "tenon_plugin", "frameworks/pjrt/libtenon_pjrt.so": "GetPjrtApi",
            "frameworks/onnxruntime/libtenon_ort.so": "CreateEpFactories ReleaseEpFactory",
            "conformance/libtenon_conformance.so": "tenon_suite_case tenon_suite_close tenon_suite_open tenon_suite_run tenon_suite_size "
                                                   "tenon_suite_write",
            "core/libtenon_runtime.so": "tenon_runtime_close tenon_runtime_device_info tenon_runtime_download tenon_runtime_free "
                                        "tenon_runtime_load tenon_runtime_load_file tenon_runtime_open tenon_runtime_program_info "
                                        "tenon_runtime_run tenon_runtime_run_on_device tenon_runtime_unload tenon_runtime_upload "
                                        "tenon_runtime_version"}


def output_of(*command) -> str:
    return subprocess.run([str(word) for word in command], check=True, text=True, stdout=subprocess.PIPE).stdout


def wrong_with(library: pathlib.Path, functions: str) -> str:
    """The fault of a library, or nothing."""
    exported = [line.split()[-1].split("@")[0] for line in output_of("nm", "-D", "--defined-only", library).splitlines()]
    if sorted(exported) != functions.split():
        return f"it exports {len(exported)} symbols, among them {exported[:5]}"
    needed = [line for line in output_of("readelf", "-d", library).splitlines() if "(NEEDED)" in line and "LLVM" in line]
    return f"it needs {needed}" if needed else ""


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    wrong = {name: wrong_with(build / name, functions) for name, functions in EXPORTED.items()}
    for name, why in wrong.items():
        print(f"FAIL symbols of {name}: {why}" if why else f"PASS symbols of {name}")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
