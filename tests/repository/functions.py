"""Runs the functions of a script whose names begin with test_, and prints "PASS name" or "FAIL name: why" for each."""


def run_tests_of(names: dict) -> int:
    """`names` is the globals() of the script. The exit status: 1 if an assertion failed."""
    failed = 0
    for name, test in list(names.items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            print(f"PASS {name}")
        except AssertionError as error:
            failed += 1
            print(f"FAIL {name}: {error or 'see the source'}")
    return 1 if failed else 0
