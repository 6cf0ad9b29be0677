"""What became slower between two lists of figures that compare wrote.

Figures of a program are compared by their ratio to XLA's in the same run, so that a slower machine, or one with other work, changes
nothing. A ratio counts as worse if it fell by more than a fixed part and by more than the rounds of either run were apart."""

import dataclasses

# The part by which a ratio may fall: times of short programs differ by a tenth between runs of the same build, compile times by more.
ALLOWED = {"time": 0.15, "compile time": 0.3, "temporaries": 0.0}

# Where rounds were further apart than this, the machine did something else, which excuses no greater loss.
MOST_APART = 0.5


@dataclasses.dataclass
class Regression:
    group: str
    name: str
    what: str  # A key of ALLOWED, or "results" for those that are wrong now.
    before: float  # XLA's figure by Tenon's; of temporaries Tenon's bytes.
    after: float

    def __str__(self) -> str:
        if self.what == "results":
            return f"{self.group + ': ' + self.name:48} the results are wrong"
        unit = " bytes" if self.what == "temporaries" else " of XLA"
        return f"{self.group + ': ' + self.name:48} {self.what:12} {self.before:10.4g} -> {self.after:.4g}{unit}"


def by_program(figures: list) -> dict:
    return {(each["group"], each["name"]): each for each in figures}


def ratio(figure: dict, peer: str, mine: str) -> float:
    return figure[peer] / figure[mine]


def worse(before: list, after: list) -> list[Regression]:
    """The greatest loss first. Programs that only one of the lists has do not count."""
    known = by_program(before)
    found = []
    for figure in after:
        old = known.get((figure["group"], figure["name"]))
        if old is None:
            continue
        def add(what, was, now):
            found.append(Regression(figure["group"], figure["name"], what, was, now))
        apart = max(ALLOWED["time"], *(min(each.get("spread", 0), MOST_APART) for each in (old, figure)))
        was, now = ratio(old, "xla", "tenon"), ratio(figure, "xla", "tenon")
        if now < was * (1 - apart):
            add("time", was, now)
        was, now = ratio(old, "xla_compile", "tenon_compile"), ratio(figure, "xla_compile", "tenon_compile")
        if now < was * (1 - ALLOWED["compile time"]):
            add("compile time", was, now)
        if figure["tenon_temporaries"] > old["tenon_temporaries"] * (1 + ALLOWED["temporaries"]):
            add("temporaries", old["tenon_temporaries"], figure["tenon_temporaries"])
        if figure.get("wrong") == "tenon" and old.get("wrong") != "tenon":
            add("results", 1, 0)
    return sorted(found, key=lambda each: each.before / each.after if each.what == "temporaries" else each.after / each.before)
