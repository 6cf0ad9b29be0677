#!/usr/bin/env python3
"""Backends outside of the tree: Tenon is installed, `tenon new-backend` writes a project in C++ and one in C into
empty folders, and each is built with the installed files alone and tested.

    new_backend_test.py BUILD [--full]

The project in C runs all of its tests, that in C++ those which do not repeat what the other proves; JAX's tests and the data
files are shared out between the two: every 10th of JAX's tests and, with TENON_STABLEHLO_DATA, every 20th file run on each
plug-in, the files strict; with --full all of them. Where many kernels are compiled, cached_cc takes what the C compiler made of a
source before; the first four steps, the samples and the project as it is installed have `cc`. Prints a line "PASS name" or "FAIL name: why" a test; figures are seconds, for people.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree

from installation import ROOT, Installed, attempt, expect, run, succeeds

LANGUAGES = {"c++": "cpp", "c": "c"}


class Project:
    """A generated project, and its plug-in once it is built."""

    def __init__(self, installed, folder, language):
        self.installed = installed
        self.language = language
        self.name = f"npu_{LANGUAGES[language]}"
        self.folder = folder / self.name
        self.plugin = self.folder / f"build/lib{self.name}.so"

    def run(self, *command, **more):
        return run(*command, folder=self.folder, variables={**self.installed.variables, **more})

    def succeeds(self, *command, **more):
        return succeeds(*command, folder=self.folder, variables={**self.installed.variables, **more})

    def step(self, name):
        """Exit status and output of one step of its tests."""
        return self.run(self.folder / "tests/run.py", self.installed.tool, self.plugin, name, **self.kept_code())

    def kept_code(self):
        """Settings by which the device takes the code of a source that was compiled before."""
        if "TENON_CC_CACHE" not in os.environ:
            return {}
        return {f"TENON_{self.name.upper()}_CC": str(ROOT / "tests/sdk/cached_cc"), "TENON_CC_CACHE": os.environ["TENON_CC_CACHE"]}


def test_install_is_relocatable(installed):
    for name in ("tenon", "tenon-plugin"):
        prefix = succeeds("pkg-config", "--variable=prefix", name, folder="/", variables=installed.variables).strip()
        expect(os.path.realpath(prefix) == str(installed.prefix.resolve()),
               f"{name}.pc says {prefix}: configure the build with -Dpkgconfig.relocatable=true")
    program = ROOT / "docs/examples/softmax.mlir"
    succeeds(installed.tool, "run", program, "--shape", "0=2x4", "--arg", "0=random:1", "--device", "template",
             "--strict", folder="/", variables={**installed.variables, "TENON_CHIPS": "1"})


def test_generate_and_build(project):
    """The seconds to write it, to set it up and to build it."""
    folder = project.folder
    seconds = []

    def timed(function, *command, **options):
        start = time.monotonic()
        output = function(*command, **options)
        seconds.append(time.monotonic() - start)
        return output

    said = timed(succeeds, project.installed.tool, "new-backend", project.name, "--lang", project.language,
                 folder=folder.parent, variables=project.installed.variables)
    expect(f"PKG_CONFIG_PATH={project.installed.pkg_config} meson setup build" in said, f"says {said}")
    # Meson warns about a feature that is newer than the version that the project requires.
    timed(project.succeeds, "meson", "setup", "build", "--fatal-meson-warnings")
    timed(project.succeeds, "ninja", "-C", "build")
    used = project.succeeds("ninja", "-C", "build", "-t", "deps")
    expect(str(project.installed.prefix) in used, "no header of the installed ones is used")
    expect(str(ROOT) not in used, f"headers of the repository are used:\n{used}")
    symbols = project.succeeds("nm", "-D", "--defined-only", project.plugin).splitlines()
    expect([line.split()[-1] for line in symbols] == ["tenon_plugin"], f"exports {symbols}")
    return "written in {:.2f} s, set up in {:.1f} s, built in {:.1f} s".format(*seconds)


def own_tests_passed(output):
    passed = re.search(r"^Ok:\s+(\d+)", output, re.MULTILINE)
    expect(passed, output[-2000:])
    return int(passed.group(1))


def test_its_own_tests(project):
    """The steps, then the smallest tier of the conformance suite, every case of which ran on the device."""
    output = project.succeeds("meson", "test", "-C", "build", "--print-errorlogs", **project.kept_code())
    steps = re.findall(r"'(\d+_\w+)'", (project.folder / "tests/meson.build").read_text())
    expect(own_tests_passed(output) - 1 == len(steps) == 10, output[-2000:])
    names = succeeds(project.installed.tool, "conform", "--list", "--tier", "smoke", folder="/",
                     variables=project.installed.variables).split()
    cases = suite_cases(project)
    expect(sorted(cases) == sorted(names) and len(names) > 250 and "failure" not in cases.values(), f"{cases}")
    log = json.loads((project.folder / "build/meson-logs/testlog.json").read_text().splitlines()[-1])
    ran = re.search(r"^steps on the device: (\d+) kernels", log["stdout"], re.MULTILINE)
    expect("conformance_smoke" in log["name"] and ran and int(ran.group(1)) > len(names), f"{log}")
    return f"{len(steps)} steps, {len(cases)} cases of the suite, {ran.group(1)} kernels on the device"


def test_its_first_tests(project):
    *steps, types = FIRST_STEPS
    for words, variables in ((steps, {}), ([types], project.kept_code())):
        output = project.succeeds("meson", "test", "-C", "build", "--print-errorlogs", *words, **variables)
        expect(own_tests_passed(output) == len(words), output[-2000:])
    return f"{len(FIRST_STEPS)} steps"


FIRST_STEPS = ["1_devices", "2_copies", "3_kernel", "4_queue", "5_types"]


def suite_cases(project):
    """The cases of the tier smoke, by name, with what became of them: the JUnit XML that the project's tests wrote."""
    root = xml.etree.ElementTree.parse(project.folder / "build/conformance-smoke.xml").getroot()
    return {case.get("name"): next((found.tag for found in case), "passed") for case in root.iter("testcase")}


def test_its_workflow(project):
    """The CI file runs tests and tiers that exist, and keeps the reports that they write."""
    text = (project.folder / ".github/workflows/test.yml").read_text()
    build = (project.folder / "tests/meson.build").read_text()
    for tier in ("quick", "full"):
        expect(f"'{tier}'" in text and f"'{tier}'" in build, f"no tier {tier}")
        listed = project.succeeds("meson", "test", "-C", "build", "--list", "--suite", tier)
        expect(f"conformance_{tier}" in listed, listed)
    page = (project.folder / "build/conformance-smoke.html").read_text()
    expect("build/conformance-*.html" in text and "build/conformance-*.xml" in text and project.name in page, text)
    declared = json.loads((project.folder / "conformance/declaration.json").read_text())
    expect(declared["device"] == project.name and json.loads((project.folder / "conformance/waivers.json").read_text()) == [],
           f"{declared}")


def test_is_a_device_by_name(project):
    """In a folder of TENON_PLUGIN_PATH."""
    variables = {**project.installed.variables, "TENON_PLUGIN_PATH": str(project.plugin.parent)}
    said = succeeds(project.installed.tool, "devices", folder="/", variables=variables)
    expect(re.search(rf"^{project.name}\s+available\s+4 devices of target chip, from ", said, re.MULTILINE), said)
    program = ROOT / "samples/int8_dot/program.mlir"
    succeeds(project.installed.tool, "run", program, "--device", f"{project.name}:1", "--arg", "0=random:1", "--arg",
             "1=random:2", "--strict", "--layer=validate", folder="/", variables=variables)


def test_jax_package(project):
    """Its entry point is its module; without the plug-in it does nothing, so that JAX goes on."""
    package = project.folder / f"jax/jax_{project.name}"
    described = tomllib.loads((project.folder / "jax/pyproject.toml").read_text())["project"]
    expect(described["entry-points"]["jax_plugins"] == {project.name: package.name}, f"{described}")
    code = f"import sys, {package.name} as p; p.initialize(); print(p.PLATFORM, 'jax_plugins' in sys.modules)"
    variables = {**project.installed.variables, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    said = succeeds(sys.executable, "-c", code, folder="/", variables=variables).strip()
    expect(said == f"{project.name} False", said)


# Mistakes that a vendor may make: text of the source, its replacement, the first step that must detect it.
MISTAKES = {
    "the last byte of a copy is lost": (
        "memcpy(bytes + at, chip->registers->window, piece)",
        "memcpy(bytes + at, chip->registers->window, piece - 1)", "2_copies"),
    "buffers are given in the wrong order": (
        "*next++ = address_of(args->buffers[i])", "*next++ = address_of(args->buffers[args->buffer_count - 1 - i])",
        "3_kernel"),
    "every launch is of the first kernel": ("command.kernel = args->kernel;", "command.kernel = 0;", "3_kernel"),
    "the compiler reorders arithmetic": ("-ffp-contract=off", "-ffast-math", "6_elementwise"),
}


def test_mistakes_are_told(project):
    """A step that is wrong fails at its test, and the first ones pass before it. The last mistake fails the suite too."""
    source = project.folder / f"{project.name}.c"
    right = source.read_text()
    first = ["1_devices", "2_copies", "3_kernel"]
    try:
        for mistake, (text, instead, wrong) in MISTAKES.items():
            expect(right.count(text) == 1, f"'{text}' is not in the source")
            source.write_text(right.replace(text, instead))
            project.succeeds("ninja", "-C", "build")
            for step in [*(step for step in first if step < wrong), wrong]:
                status, output = project.step(step)
                expect((status == 1 and "WRONG " in output) == (step == wrong),
                       f"{mistake}: {step} ends with {status}: {output[-500:]}")
        status, output = project.run("meson", "test", "-C", "build", "--print-errorlogs", "conformance_smoke", "--test-args",
                                     "op/add/* op/cosine/* op/tan/*", **project.kept_code())
        failed = [name for name, found in suite_cases(project).items() if found == "failure"]
        expect(status == 1 and failed and "op/add/f32/prime/ordinary" in suite_cases(project) and "NOT conformant" in output, f"the suite with {mistake}: {output[-500:]}")
        # The source that the device compiles, with the right value beside the line that is wrong.
        expect(re.search(r"= v\d+; +\| \S+ = \S+, the device: ", output), output[-3000:])
        return f"{len(MISTAKES)} mistakes; the last fails {len(failed)} cases of the suite"
    finally:
        source.write_text(right)
        project.succeeds("ninja", "-C", "build")


def test_errors_want_a_result(project):
    """The last step fails on a device that does nothing but fail."""
    source = project.folder / f"{project.name}.c"
    right = source.read_text()
    text = "  ChipCommand command = command_of(CHIP_LAUNCH,"
    try:
        expect(right.count(text) == 1, f"'{text}' is not in the source")
        source.write_text(right.replace(text, '  fail(args->error, TENON_INTERNAL, "no memory, does not start");\n'
                                        "  if (args->device != 0) return TENON_INTERNAL;\n" + text))
        project.succeeds("ninja", "-C", "build")
        status, output = project.step("10_errors")
        expect(status == 1 and "WRONG nothing fails" in output, f"ends with {status}: {output[-500:]}")
    finally:
        source.write_text(right)
        project.succeeds("ninja", "-C", "build")


def test_data_files(project, build, full):
    # Unoptimised: else the C compiler takes most of the time.
    variables = {**os.environ, "TENON_TEST_PLUGIN": str(project.plugin),
                 f"TENON_{project.name.upper()}_CC": str(ROOT / "tests/sdk/cc_without_double")}
    if not full:  # Each flavour has files of its own.
        variables.update(GTEST_TOTAL_SHARDS="20", GTEST_SHARD_INDEX="3" if project.language == "c" else "11")
    output = succeeds(build / "tests/data_test", "--gtest_filter=GivenPlugin*", "--gtest_brief=1", folder=ROOT,
                      variables=variables, limit=3600)
    passed = re.search(r"PASSED  \] (\d+) test", output)
    expect(passed and int(passed.group(1)) > 50, output[-2000:])
    return f"{passed.group(1)} files, strict"


def wheel_of(project, framework, python):
    """The wheel of a Python package of the project. The environment's Python has pip and setuptools."""
    made = {**project.installed.variables, "PATH": f"{python.parent}:{os.environ['PATH']}"}
    lines = succeeds("ninja", "-C", "build", "--quiet", "wheel", folder=project.folder, variables=made, limit=300).splitlines()
    name = rf"{framework}_{project.name}-0\.1\.0-py3-none-linux_\w+\.whl"
    wheels = [pathlib.Path(line) for line in lines if re.fullmatch(name, pathlib.Path(line).name)]
    expect(len(wheels) == 1, f"{lines}")
    return wheels[0]


def test_jax_is_installed(project):
    """By pip, from what is installed: tenon-jax with its library, and the wheel of the project, made by one command. The device
    is a platform of its own name, beside `tenon`, and a network learns on it."""
    python = ROOT / "frameworks/jax/.venv/bin/python"
    sources = project.succeeds("pkg-config", "--variable=jax", "tenon-plugin").strip()
    expect(os.path.realpath(sources).startswith(str(project.installed.prefix.resolve())), f"tenon.pc says {sources}")
    wheel = wheel_of(project, "jax", python)
    # JAX itself is the environment's; what is installed here goes before what that has.
    place = project.folder.parent / f"site_{project.name}"
    succeeds(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
             "--disable-pip-version-check", "--target", place, sources, wheel, folder="/",
             variables=project.installed.variables, limit=300)
    variables = {**project.installed.variables, "PYTHONPATH": str(place), "JAX_PLATFORMS": project.name}
    code = f"""import jax, jax_plugins.tenon as p, jax_{project.name} as own
print(p.library_path(), own.PLUGIN)
print(jax.devices(), jax.default_backend(), jax.grad(lambda x: x ** 3)(2.0))
jax.debug.print("{{}}", jax.jit(lambda x: x + 1)(3))"""
    said = succeeds(python, "-c", code, folder="/", variables=variables).strip()
    library, devices, seen = said.splitlines()
    for path in library.split():
        expect(path.startswith(str(place.resolve())), f"{path} is loaded, not what was installed")
    expect(devices.endswith(f"{project.name} 12.0") and seen == "4", said)
    learned = succeeds(python, project.folder / "jax/tests/test_training.py", folder="/",
                       variables={**variables, "JAX_PLATFORMS": f"{project.name},cpu"}).strip()
    expect(learned.startswith(f"{project.name}: loss "), learned)
    return f"{devices}; {learned}; the wheel has {wheel.stat().st_size // 1024} KiB"


def test_torch_is_installed(project):
    """The wheel of the project beside tenon-torch: torch.compile and torch.device know the device by its name, and a network learns
    on it both ways."""
    python = ROOT / "frameworks/torch/.venv/bin/python"
    place = project.folder.parent / f"torch_site_{project.name}"
    succeeds(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", "--target", place,
             wheel_of(project, "torch", python), folder="/", variables=project.installed.variables, limit=300)
    variables = {**project.installed.variables, **project.kept_code(), "PYTHONPATH": str(place), "TENON_TORCH_FALLBACK": "error"}
    code = f"""import torch, torch._dynamo
print("{project.name}" in torch._dynamo.list_backends(exclude_tags=None), torch.accelerator.current_accelerator())
print(torch.{project.name}.get_device_name())"""
    known, device = succeeds(python, "-c", code, folder="/", variables=variables).strip().splitlines()
    expect(known == f"True {project.name}" and device.startswith(str(place.resolve())), f"{known}, {device}")
    learned = succeeds(python, project.folder / "torch/tests/test_training.py", folder="/", variables=variables, limit=600).strip()
    expect(re.fullmatch(rf"{project.name}, compiled: loss .*\n{project.name}, op by op: loss .*", learned), learned)
    return learned.replace("\n", "; ")


def test_onnxruntime_is_installed(project):
    """The wheel of the project beside tenon-ort: a session has the device's provider under its name."""
    python = ROOT / "frameworks/onnxruntime/.venv/bin/python"
    place = project.folder.parent / f"ort_site_{project.name}"
    succeeds(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", "--target", place,
             wheel_of(project, "ort", python), folder="/", variables=project.installed.variables, limit=300)
    variables = {**project.installed.variables, **project.kept_code(), "PYTHONPATH": str(place)}
    said = succeeds(python, project.folder / "onnxruntime/tests/test_session.py", folder="/", variables=variables, limit=300).strip()
    expect(re.fullmatch(rf"{project.name}, 3 rows: .*\n{project.name}, 5 rows: .*", said), said)
    return said.replace("\n", "; ")


def test_jax(project, build, full):
    """JAX's functions on the device: every 10th test of frameworks/jax/tests, others on each flavour."""
    jax = ROOT / "frameworks/jax"
    variables = {**os.environ, **project.kept_code(), "JAX_PLATFORMS": "tenon,cpu", "TENON_DEVICE": str(project.plugin),
                 "TENON_PJRT_LIBRARY": str(build / "frameworks/pjrt/libtenon_pjrt.so")}
    part = "1/1" if full else "2/10" if project.language == "c" else "6/10"
    output = succeeds(jax / ".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=300",
                      "--part", part, jax / "tests", folder=ROOT, variables=variables, limit=1800)
    passed = re.search(r"(\d+) passed", output)
    expect(passed and int(passed.group(1)) > 15 and "failed" not in output, output[-2000:])
    return f"{passed.group(1)} cases"


def test_suite_library(project, build):
    """A vendor's test program, built with the installed files alone, has the cases of the suite as its tests."""
    folder = project.folder.parent / "suite_project"
    shutil.copytree(ROOT / "docs/examples/suite", folder)
    variables = project.installed.kept_variables
    succeeds("meson", "setup", "build", folder=folder, variables=variables)
    succeeds("ninja", "-C", "build", folder=folder, variables=variables)
    used = succeeds("ninja", "-C", "build", "-t", "deps", folder=folder, variables=variables)
    # ccache names headers by relative paths.
    expect(f"{project.installed.prefix.name}/" in used and str(ROOT) not in used, f"headers of the repository are used:\n{used}")
    patterns = ["op/add/f32/*", "abi/*"]
    listed = succeeds(folder / "build/list_cases", *patterns[:1], folder="/", variables=variables)
    expected = [succeeds(project.installed.tool, "conform", "--list", each, folder="/", variables=variables) for each in patterns]
    expect(expected[0] in listed and "lists cases only" in listed, listed)
    number = "".join(expected).count("\n")
    report = folder / "report.json"
    variables = {**variables, **project.kept_code(), "PLUGIN": str(project.plugin), "CASES": " ".join(patterns), "REPORT": str(report)}
    output = succeeds(folder / "build/suite_test", "--gtest_brief=1", folder="/", variables=variables)
    expect(f"PASSED  ] {number} tests" in output, output[-2000:])
    written = json.loads(report.read_text())
    kernels = [case["steps"]["kernels"] for case in written["cases"] if case["name"].startswith("op/")]
    expect(written["passed"] and len(written["cases"]) == number and min(kernels) > 0, f"{kernels}")
    wrong = {**variables, "PLUGIN": str(build / "conformance/libmutant.so"), "TENON_MUTANT": "kernel/add/f32/drops_nan"}
    status, output = run(folder / "build/suite_test", "--gtest_brief=1", folder="/", variables=wrong)
    failed = [case["name"] for case in json.loads(report.read_text())["cases"] if case["outcome"] == "fail"]
    expect(status == 1 and "op/add/f32/prime/nan" in failed and "to blame: kernel" in output, output[-2000:])
    return f"{number} cases; a mutant fails {len(failed)}"


def test_project(installed, folder, language, build, full):
    """Whether all tests of one flavour passed."""
    project = Project(installed, folder, language)
    if not attempt(f"{language}: build", test_generate_and_build, project):
        return False
    tests = {"c": [test_its_own_tests, test_its_workflow, test_is_a_device_by_name, test_mistakes_are_told, test_errors_want_a_result],
             "c++": [test_its_first_tests, test_is_a_device_by_name, test_jax_package]}[language]
    good = all([attempt(f"{language}: {test.__name__.removeprefix('test_')}", test, project) for test in tests])
    if language == "c++":
        good &= attempt("the suite as a library", test_suite_library, project, build)
    if (ROOT / "frameworks/jax/.venv/tenon.installed").exists():
        if language == "c++":
            good &= attempt(f"{language}: JAX installed", test_jax_is_installed, project)
        good &= attempt(f"{language}: JAX", test_jax, project, build, full)
    else:
        print(f"SKIP {language}: JAX: there is no environment with it (frameworks/jax/make-venv)")
    others = {"torch": ("PyTorch", test_torch_is_installed), "onnxruntime": ("ONNX Runtime", test_onnxruntime_is_installed)}
    for framework, (name, test) in others.items() if language == "c++" else ():
        if (ROOT / "frameworks" / framework / ".venv/tenon.installed").exists():
            good &= attempt(f"{language}: {name} installed", test, project)
        else:
            print(f"SKIP {language}: {name}: there is no environment with it (frameworks/{framework}/make-venv)")
    if "TENON_STABLEHLO_DATA" in os.environ:
        good &= attempt(f"{language}: data files", test_data_files, project, build, full)
    else:
        print(f"SKIP {language}: data files: TENON_STABLEHLO_DATA is not set")
    return good


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        installed = Installed(build, folder)
        good = attempt("install", test_install_is_relocatable, installed)
        (folder / "work").mkdir()
        # The two flavours use one installation and nothing else in common.
        with concurrent.futures.ThreadPoolExecutor(min(os.cpu_count(), len(LANGUAGES))) as pool:
            runs = [pool.submit(test_project, installed, folder / "work", language, build, "--full" in sys.argv)
                    for language in LANGUAGES]
            good &= all([each.result() for each in runs])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
