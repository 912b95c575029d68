"""What a phone cannot be sent.

Own design: raised by the translations of a publisher's tags.
"""


class UnsuitableError(Exception):
    """The tag's sound is not in the codec of the call, or the tag is no sound.

    Own design: the caller counts these; the publisher is not told.
    """
