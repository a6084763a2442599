"""Front end: PTX text."""

from .reading import read as read
from .scopes import declared as declared
from .syntax import Function as Function
from .syntax import Module as Module
