"""What tests of projects outside of the tree share: checks, and an installation of Tenon."""

import json
import os
import pathlib
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Failure(Exception):
    """A failed check."""


def expect(condition, text):
    if not condition:
        raise Failure(text)


def run(*command, folder, variables, limit=300):
    """Exit status and all output, in an environment with only `variables`."""
    try:
        done = subprocess.run([str(word) for word in command], cwd=folder, env=variables, text=True, timeout=limit,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return -1, f"no end after {limit} s"


def succeeds(*command, **options):
    status, output = run(*command, **options)
    expect(status == 0, f"{' '.join(map(str, command))}: exit status {status}: {output[-3000:]}")
    return output


def kept_by_ccache(folder):
    """Variables of a build below `folder` that takes what ccache, which Meson uses where it is installed, kept of earlier runs: in
    folders of other names, in other clones too."""
    if shutil.which("ccache") is None:
        return {}
    kept = subprocess.run(["ccache", "--get-config", "cache_dir"], check=True, capture_output=True, text=True).stdout.strip()
    return {"CCACHE_DIR": kept, "CCACHE_BASEDIR": str(folder.resolve()), "CCACHE_NOHASHDIR": "1"}


class Installed:
    """Tenon under a prefix that was moved after it was installed."""

    def __init__(self, build, folder):
        listing = subprocess.run(["meson", "introspect", "--buildoptions", str(build)], check=True, capture_output=True,
                                 text=True).stdout
        options = {option["name"]: option["value"] for option in json.loads(listing)}
        staging = folder / "staging"
        succeeds("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", staging, folder=ROOT,
                 variables=dict(os.environ))
        self.prefix = folder / "moved"
        (staging / options["prefix"].lstrip("/")).rename(self.prefix)
        shutil.rmtree(staging)
        self.pkg_config = self.prefix / options["libdir"] / "pkgconfig"
        self.tool = self.prefix / options["bindir"] / "tenon"
        plain = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "PKG_CONFIG_PATH": str(self.pkg_config)}
        self.variables = {**plain, "CCACHE_DISABLE": "1"}
        self.kept_variables = {**plain, **kept_by_ccache(folder)}

    def conform(self, plugin, folder, *words, variables, limit=3600):
        """The cases of a report of the conformance suite on a plug-in, and the output."""
        report = folder / "report.json"
        _, output = run(self.tool, "conform", "--device", plugin, "--no-reduce", "--quiet", "--json", report, *words,
                        folder="/", variables=variables, limit=limit)
        expect(report.exists(), output[-2000:])
        cases = json.loads(report.read_text())["cases"]
        report.unlink()
        return cases, output


def attempt(name, function, *arguments):
    """Whether a test passed; prints its line."""
    start = time.monotonic()
    try:
        said = function(*arguments)
    except Failure as failure:
        print(f"FAIL {name}: {failure}", flush=True)
        return False
    said = f"{said}; " if said else ""
    print(f"PASS {name}: {said}{time.monotonic() - start:.1f} s", flush=True)
    return True
