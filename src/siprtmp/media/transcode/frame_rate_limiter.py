"""Which pictures of a source are made, if there may not be more than some a second."""


class FrameRateLimiter:
    """Own design: a steady source loses every so many pictures, and a late one makes up for it.

    `rate` is in pictures a second.

    >>> pace = FrameRateLimiter(15)
    >>> [at for at in range(0, 320, 40) if pace.has_room(at)]
    [0, 80, 120, 200, 280]
    """

    def __init__(self, rate: float) -> None:
        self.rate, self._due = rate, 0.0

    def has_room(self, time: int) -> bool:
        """Whether to make a picture of this time (ms); a jump of the time begins anew."""
        step, early = 1000 / self.rate, self._due - time
        if step / 4 < early < 2 * step:
            return False
        self._due = (self._due if abs(early) < step else time) + step
        return True
