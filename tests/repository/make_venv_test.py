#!/usr/bin/env python3
"""scripts/make-venv distinguishes an unreachable index from a pinned version that the index lacks, and sees that a file of pins changed. Prints PASS and FAIL lines."""

import http.server
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = "tenon-is-not-there"


class Index(http.server.BaseHTTPRequestHandler):
    """An index that has another version of each package."""

    def do_GET(self):
        page = f'<a href="{PACKAGE}-1-py3-none-any.whl">{PACKAGE.replace("-", "_")}-1-py3-none-any.whl</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


def make_venv(folder, index, pins=f"{PACKAGE}==99\n", **variables):
    """Exit status and last line of output."""
    requirements = folder / "requirements.txt"
    requirements.write_text(pins)
    settings = {name: value for name, value in os.environ.items()
                if not name.startswith("PIP_") and not name.lower().endswith("_proxy")}
    settings.update(PIP_CONFIG_FILE=os.devnull, PIP_INDEX_URL=index, **variables)
    done = subprocess.run([ROOT / "scripts/make-venv", requirements, folder / "venv"], env=settings, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, (done.stdout.strip().splitlines() or [""])[-1]


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    there = f"http://127.0.0.1:{server.server_port}/simple"
    failed = False
    # A port that nobody listens at, as long as this one has it.
    with socket.socket() as taken, tempfile.TemporaryDirectory() as name:
        taken.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}/simple"
        cases = {
            "an index out of reach": (nowhere, {}, 77, "make-venv: pip does not reach its index"),
            "a pin that the index lacks": (there, {}, 1, "make-venv: pip cannot install what"),
            "no Python": (there, {"PYTHON": "/nowhere/python"}, 77, "make-venv: no '/nowhere/python' found"),
        }
        for case, (index, variables, status, text) in cases.items():
            folder = pathlib.Path(name) / case.replace(" ", "_")
            folder.mkdir()
            found, said = make_venv(folder, index, **variables)
            right = found == status and said.startswith(text)
            failed |= not right
            print(f"PASS {case}" if right else f"FAIL {case}: exit status {found}, says {said}", flush=True)
        # A file that is included is part of what is pinned.
        folder = pathlib.Path(name) / "included"
        folder.mkdir()
        included = folder / "more.txt"
        included.write_text("# nothing\n")
        said = [make_venv(folder, there, "-r more.txt\n")[1].split(" ", 1)[1] for _ in range(2)]
        included.write_text(f"{PACKAGE}==99\n")
        status, last = make_venv(folder, there, "-r more.txt\n", PYTHON="/nowhere/python")  # Which it needs to make it anew.
        right = said == [f"made {folder}/venv", f"{folder}/venv is up to date"] and status == 77
        failed |= not right
        print("PASS a change of an included file" if right else f"FAIL a change of an included file: {said}, exit status {status}, says {last}", flush=True)
    server.shutdown()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
