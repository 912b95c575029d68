"""What a gateway in memory is made of: its log, its ports and its timers."""


class Log:
    """The log lines, kept instead of written."""

    def __init__(self):
        self.lines = []

    def event(self, what, **values):
        self.lines.append((what, values))

    warning = event

    def ends(self):
        """The reasons that calls ended for."""
        return [values["reason"] for what, values in self.lines if what == "call-end"]


class Wire:
    """A pair of ports that records each packet sent, with its time."""

    def __init__(self, home, port):
        self.home, self.rtp_port = home, port
        self.remote = self.remote_rtcp = None
        self.is_ready = True
        self.sent, self.reports = [], []
        home.ports.add(port)

    def send_rtp(self, data):
        self.sent.append((self.home.link.now, data))

    def send_run(self, run):
        for data in run:
            self.send_rtp(data)

    def send_rtcp(self, data):
        self.reports.append(data)

    def close(self):
        self.home.ports.remove(self.rtp_port)


class Alarm:
    """A machine that is due when its timer is, as `p2psip.net.alarm` has it."""

    def __init__(self, home, machine):
        self.home, self.machine, self.deadline = home, machine, None
        home.machines.append(self)

    def set(self):
        due = self.machine.deadline
        if due is not None and (self.deadline is None or due < self.deadline):
            self.deadline = due

    def tick(self, now):
        self.deadline = None
        self.machine.tick(now)
        self.set()

    def cancel(self):
        if self in self.home.machines:
            self.home.machines.remove(self)
