#!/usr/bin/env python3
"""Writes a header with a hash of sources, which becomes part of a backend's compiler_id.

    source_hash.py OUTPUT DEPFILE ROOT NAMESPACE FOLDER…      folders are given relative to ROOT

All sources and headers count, including those of subfolders, except tests. The depfile names them and their
folders, so that the header is made again when one is changed, added or removed.
"""

import hashlib
import pathlib
import sys

ENDINGS = {".cpp", ".h", ".inc"}


def is_counted(path: pathlib.Path) -> bool:
    return path.suffix in ENDINGS and "test" not in path.stem


def main() -> int:
    output, depfile, root, namespace, *names = sys.argv[1:]
    root = pathlib.Path(root)
    folders = [root / name for name in names]
    folders += [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_dir()]
    files = [path for folder in folders for path in sorted(folder.iterdir()) if is_counted(path)]
    whole = hashlib.sha256()
    for path in sorted(files):
        content = path.read_bytes()
        whole.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
        whole.update(content)
    pathlib.Path(output).write_text(f"""// Of the sources in {", ".join(names)}, by scripts/source_hash.py.
#pragma once

namespace tenon::{namespace} {{

inline constexpr const char* kCompilerHash = "{whole.hexdigest()[:16]}";

}}  // namespace tenon::{namespace}
""")
    escaped = [str(path).replace(" ", "\\ ") for path in folders + files]
    pathlib.Path(depfile).write_text(f"{output}: {' '.join(escaped)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
