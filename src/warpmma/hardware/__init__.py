"""What real GPUs computed: recorded registers, and their replay."""

from .recordings import Recording, Replay, open_recording, shipped

__all__ = ["Recording", "Replay", "open_recording", "shipped"]
