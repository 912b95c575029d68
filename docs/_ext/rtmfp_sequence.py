"""A sequence diagram in letters: a lane for each end, an arrow for each datagram."""

from rtmplite.rtmfp.netconnection.messages import parse_message
from rtmplite.rtmfp.wire import chunks
from rtmplite.rtmfp.wire.flow_chunks import FragmentControl
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.control import OtherUserControl, parse_control
from rtmplite.rtmp.wire.message import MessageType

NAMES = {
    chunks.InitiatorHello: "IHello",
    chunks.ForwardedInitiatorHello: "FIHello",
    chunks.ResponderHello: "RHello",
    chunks.ResponderRedirect: "Redirect",
    chunks.InitiatorInitialKeying: "IIKeying",
    chunks.ResponderInitialKeying: "RIKeying",
    chunks.Ping: "Ping",
    chunks.PingReply: "Ping Reply",
    chunks.SessionClose: "Close",
    chunks.SessionCloseAck: "Close Ack",
}
TIME = 5  # width of the column of times, in ms
EVENTS = {41: "keepalive timers"}  # user control that only RTMFP has


def sequence(seen, lost, lanes, gap):
    """The lines of a drawing.

    `seen` are (place, datagram) pairs; `lost` the places of those that do not arrive.  `lanes` are
    pairs of a name and the addresses that are drawn there, `gap` is the width between two of them.
    """
    columns = [TIME + 2 + i * (gap + 1) for i in range(len(lanes))]
    where = {address: columns[i] for i, (_, addresses) in enumerate(lanes) for address in addresses}
    lines = [heading([name for name, _ in lanes], columns)]
    for place, each in seen:
        ends = where[each.source], where[each.destination]
        text = ", ".join(map(describe, chunks.expand_next_user_data(each.packet.chunks)))
        label = f"{each.at * 1000:{TIME}.0f}"
        lines.append(label + arrow(text, *ends, columns, place in lost)[TIME:])
    return "\n".join(lines) + "\n"


def heading(names, columns):
    """The names above their lanes."""
    line = "ms".rjust(TIME)
    for name, column in zip(names, columns, strict=True):
        line = line.ljust(max(column - len(name) // 2, TIME + 2)) + name
    return line


def arrow(text, start, end, columns, is_lost):
    """One line with an arrow from the column `start` to `end`, with a text on its shaft."""
    left, right = min(start, end), max(start, end)
    room = right - left - 1
    shaft = f" {text} ".center(room - 2, "-")
    assert len(shaft) <= room - 2, text
    head = "x" if is_lost else ">" if start < end else "<"
    shaft = f"-{shaft}{head}" if start < end else f"{head}{shaft}-"
    line = [" "] * (columns[-1] + 1)
    for column in columns:
        line[column] = "|"
    line[left + 1 : right] = shaft
    return "".join(line)


def describe(chunk):
    """A chunk in a word or two: data and acknowledgements as flow/sequence number."""
    match chunk:
        case chunks.UserData(flow_id=flow, sequence_number=number):
            return f"{flow}/{number} {content(chunk)}"
        case chunks.DataAckRanges(flow_id=flow) | chunks.DataAckBitmap(flow_id=flow):
            return f"Ack {flow}/" + " ".join(
                f"{last}" if first in (0, last) else f"{first}-{last}"
                for first, last in chunk.ranges()
            )
    return NAMES[type(chunk)]


def content(chunk):
    """The message that a fragment begins, or the note that a flow has ended without one."""
    if chunk.final and not chunk.data:
        return "end"
    assert chunk.fragment_control in (FragmentControl.WHOLE, FragmentControl.BEGIN)
    message = parse_message(chunk.data, 0)
    if message.type_id == MessageType.COMMAND:
        return Command.parse(message).name
    control = parse_control(message)
    if isinstance(control, OtherUserControl):
        return EVENTS[control.event_type]
    if control is not None:
        return type(control).__name__
    return MessageType(message.type_id).name.lower()
