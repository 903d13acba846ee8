"""Which samples there are, and where: 8 bytes a sample and about 0.25 kB a problem."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

MOST_SAMPLES = 1 << 24  # of one problem; a larger number is no sample number, but damage


class SampleIndex:
    """Positive places of finished samples and of open ones, by problem and sample number.

    A finished sample stays as it is; an open one may be put again, open or finished.
    ``finished`` and ``open`` count them.
    """

    def __init__(self) -> None:
        self.finished = 0
        self.open = 0
        # The place of sample i at index i: 0 where there is none, negative where it is open.
        self._places: dict[str, array[int]] = {}
        self._width = 1

    def place(self, problem: str, sample: int, *, open_: bool = False) -> int | None:
        """Where the finished (or the open) sample is; None where there is none."""
        places = self._places.get(problem)
        if places is None or not 0 <= sample < len(places):
            return None
        place = -places[sample] if open_ else places[sample]
        return place if place > 0 else None

    def put(self, problem: str, sample: int, place: int, *, open_: bool = False) -> None:
        """Say where a sample is.

        Raises:
            ValueError: the sample is finished already, or its number is out of range.
        """
        if not 0 <= sample < MOST_SAMPLES:
            raise ValueError(f"{sample} is no number of a sample")
        places = self._places.get(problem)
        if places is None:
            # Problems have as many samples as the one before, as a rule: made so at once, the
            # array has no room to spare.
            self._width = max(self._width, sample + 1)
            places = self._places[problem] = array("q", [0]) * self._width
        elif sample >= len(places):
            self._width = max(self._width, sample + 1)
            places.extend(array("q", [0]) * (self._width - len(places)))
        before = places[sample]
        if before > 0:
            raise ValueError(f"sample {sample} of {problem} is there already")
        places[sample] = -place if open_ else place
        self.open += open_ - (before < 0)
        self.finished += not open_

    def problems(self) -> Iterator[str]:
        """The problems with a sample, finished or open, in the order of their first one."""
        return iter(self._places)

    def samples(self, problem: str, *, open_: bool = False) -> Iterator[int]:
        """The numbers of a problem's finished (or open) samples, ascending."""
        for sample, place in enumerate(self._places.get(problem, ())):
            if place < 0 if open_ else place > 0:
                yield sample
