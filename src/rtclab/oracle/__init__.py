"""The oracle: what our codecs read and write, for programs in any language.

Own design: docs/5-reference/oracle-protocol.md is the contract.
"""
