"""Pictures of a kernel: what is known of it gathered (`picture.py`), and the same as one page that needs nothing else (`page.py`)."""

from cake_core.show.page import page
from cake_core.show.picture import Picture, Place, Strip, gathered, outlined, picture_object

__all__ = ["Picture", "Place", "Strip", "gathered", "outlined", "page", "picture_object"]
