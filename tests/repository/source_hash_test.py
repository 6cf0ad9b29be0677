#!/usr/bin/env python3
"""scripts/source_hash.py: which changes of sources change the hash. Prints PASS and FAIL lines."""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def hash_of(root: pathlib.Path) -> str:
    """The hash of what stands in root/backend, after a look at the depfile."""
    output, depfile = root / "hash.h", root / "hash.d"
    subprocess.run([sys.executable, str(ROOT / "scripts/source_hash.py"), str(output), str(depfile), str(root), "cpu",
                    "backend"], check=True)
    named = set(depfile.read_text().split()[1:])
    missing = [str(path) for path in (root / "backend").rglob("*")
               if (path.is_dir() or path.suffix in (".cpp", ".h")) and "test" not in path.name and str(path) not in named]
    assert not missing, f"the depfile leaves out {missing}"
    return re.search(r'kCompilerHash = "([0-9a-f]{16})"', output.read_text()).group(1)


def main() -> int:
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "backend/part").mkdir(parents=True)
        (root / "backend/a.cpp").write_text("int a;\n")
        (root / "backend/part/b.h").write_text("int b;\n")
        last = hash_of(root)
        for what, path, text, changes in (
                ("a source is changed", "backend/a.cpp", "int c;\n", True),
                ("a header of a subfolder is changed", "backend/part/b.h", "int d;\n", True),
                ("a source is added", "backend/part/e.cpp", "", True),
                ("a test is added", "backend/a_test.cpp", "int t;\n", False),
                ("a text is added", "backend/README.md", "text\n", False),
                ("nothing is changed", "backend/a.cpp", "int c;\n", False)):
            (root / path).write_text(text)
            now = hash_of(root)
            right = (now != last) == changes
            print(f"PASS {what}" if right else f"FAIL {what}: {last} became {now}")
            status = status or not right
            last = now
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
