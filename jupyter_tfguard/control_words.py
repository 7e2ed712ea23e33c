"""What a kernel's control channel is asked, in one place: the server asks, the guard in the kernel answers.

The pages know the same requests (``labextension/src/widget/control.ts``).
"""

from __future__ import annotations

# Types of the two messages.
REQUEST = "tfguard_request"
REPLY = "tfguard_reply"
# What a request may ask for.
STATE = "state"
RATE = "rate"
HERE = "here"
