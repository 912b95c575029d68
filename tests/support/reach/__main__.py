"""Print each branch of a parser that no drawn input reaches; exit code 1 if there is one.

    PYTHONPATH=src:tests python -m support.reach support.reach.p2psip_readings

Own design: a family is a module with a `FAMILY`.  A round draws `--count` inputs for each reading;
while something is unreached there is another with other inputs, up to `--rounds`, so that a branch
that is rarely drawn does not depend on luck.  It is for the readings that have entered the module
of such a branch: the others would draw for nothing.  An excuse for a branch that is reached, or
that is not there any more, is an error as well.
"""

import argparse
import sys
from importlib import import_module
from time import process_time

from support.reach.measure import Measurement
from support.reach.reading import Family

FAMILIES = ("support.reach.p2psip_readings", "support.reach.rtmplite_readings")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="support.reach")
    parser.add_argument("families", nargs="*", metavar="MODULE", help="with a FAMILY; all of ours")
    parser.add_argument("--count", type=int, default=100, help="inputs of each reading in a round")
    parser.add_argument("--rounds", type=int, default=15, help="at most; fewer when all is reached")
    parser.add_argument("--seed", type=int, default=0, help="to draw other inputs")
    options = parser.parse_args()
    complaints = 0
    for name in options.families or FAMILIES:
        start = process_time()
        family: Family = import_module(name).FAMILY
        wrong, rounds = _complaints(family, options)
        for line in wrong:
            print(line)
        excused = f", {len(family.excused)} excused" if family.excused else ""
        print(
            f"{name}: {len(wrong)} unreached{excused}; {len(family.parsers)} modules,"
            f" {len(family.readings)} readings, rounds of {options.count}: {rounds},"
            f" {process_time() - start:.0f} s"
        )
        complaints += len(wrong)
    return 1 if complaints else 0


def _complaints(family: Family, options: argparse.Namespace) -> tuple[list[str], int]:
    """What is wrong after as many rounds as it takes, and how many these were."""
    measurement, rounds, readings = Measurement(family), 0, family.readings
    while True:
        measurement.read(readings, options.count, options.seed + rounds * options.count)
        rounds += 1
        unreached = measurement.unreached()
        inexcusable = [each for each in unreached if each.name not in family.excused]
        if not inexcusable or rounds == options.rounds:
            break
        readings = measurement.candidates(inexcusable)
    unjust = sorted(family.excused.keys() - {each.name for each in unreached})
    gone = [f"excused, and reached or gone: {name}" for name in unjust]
    return [*map(str, inexcusable), *gone], rounds


if __name__ == "__main__":
    sys.exit(main())
