"""The executor: runs a program to its end, lane by lane where they diverge."""

from .calling import RuntimeCall
from .executor import Limit, run_program
from .launch_loop import LaunchOptions, ProgramWork, Work, launch_program, run_launch
from .outcome import Launch
