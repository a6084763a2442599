"""Calls: return addresses, recursion, calls through registers, limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from assembler import go

from warpmma import LimitError
from warpmma.errors import OperandError
from warpmma.machine import HazardError

LANE = np.arange(64) % 32


def test_lanes_return_to_where_they_called() -> None:
    """One function from two places under divergence."""
    file, _ = go("""
        setp.lt.u32 p, lane, 16
        @p bra low
        mov.u32 y, 100
        call twice
        bra end
        low:
        mov.u32 y, 200
        call twice
        add.u32 y, y, 1
        end:
        exit
        .func twice
        add.u32 y, y, y
        ret
    """)
    assert file.read("y").reshape(-1).tolist() == [401 if n < 16 else 200 for n in LANE]


def test_recursion_keeps_registers_of_every_thread() -> None:
    """x = n + (n - 1) + ... + 0, from a register of each of the calls, as deep as each lane goes."""
    file, _ = go("""
        mov.u32 x, 0
        mov.u32 y, lane
        call sum
        add.u32 z, x, 0
        exit
        .func sum recursive at
        mov.u32 at, y
        setp.eq.u32 p, y, 0
        @p bra least
        sub.u32 y, y, 1
        call sum
        least:
        add.u32 x, x, at
        ret
    """)
    assert file.read("z").reshape(-1).tolist() == [n * (n + 1) // 2 for n in LANE]


def test_functions_by_their_addresses() -> None:
    file, _ = go("""
        setp.lt.u32 p, lane, 7
        mov.u64 wide, one
        @p mov.u64 wide, two
        call wide
        add.u32 x, x, 1000
        exit
        .func one
        mov.u32 x, 1
        ret
        .func two
        mov.u32 x, 2
        ret
    """)
    assert file.read("x").reshape(-1).tolist() == [1002 if n < 7 else 1001 for n in LANE]


def test_an_address_of_no_function() -> None:
    with pytest.raises(HazardError, match=r"program.ptx:2: call: bounds: .*lane 0 .*31 more.*0x2a is not the address"):
        go("mov.u64 wide, 42\ncall wide\n.func one\nret", threads=32)


def test_what_a_function_wrote_before_it_does_not_have_now() -> None:
    with pytest.raises(HazardError, match=r"program.ptx:9: add.u32: poison"):
        go("""
            mov.u32 x, 1
            call f
            mov.u32 x, 0
            call f
            exit
            .func f y
            setp.eq.u32 p, x, 1
            @p mov.u32 y, 5
            add.u32 z, y, 1
            ret
        """)


def test_ret_of_an_entry_and_exit_in_a_function() -> None:
    file, _ = go("""
        mov.u32 x, 1
        setp.lt.u32 p, lane, 3
        @p ret
        call f
        mov.u32 x, 2
        ret
        .func f
        setp.lt.u32 p, lane, 9
        @p exit
        ret
    """)
    assert file.read("x").reshape(-1).tolist() == [1 if n < 9 else 2 for n in LANE]


def test_lanes_reconverge_after_a_call_by_some_of_them() -> None:
    _, costs = go("""
        setp.lt.u32 p, lane, 3
        @p call f
        add.u32 y, lane, 1
        exit
        .func f
        mov.u32 x, 0
        ret
    """)
    assert {site.line: n for site, n in costs.instructions.items()}[3] == 2


def test_uniform_calls_and_branches_that_are_not() -> None:
    for line in ("@p bra.uni end", "@p call.uni f", "@p ret.uni"):
        text = f"setp.lt.u32 p, lane, 3\n{line}\nend:\nexit\n.func f\nret"
        with pytest.raises(HazardError, match=r"program.ptx:2: .*divergent: .*lane 3 \(and 28 more.*`.uni` promises"):
            go(text, threads=32)
        go(text.replace("lane, 3", "warp, 1"))  # warps may go apart


def test_a_recursion_without_end() -> None:
    with pytest.raises(LimitError, match=r"program.ptx:4: call: f is called with 32768 calls before it that have not"):
        go("call f\n.func f recursive x y z\nmov.u32 x, 0\ncall f\nret", threads=32)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("call nobody", "no function nobody; there are f, given"),
        ("call f, (0:4), ()", r"arguments of \[4\] bytes; f has \[\]"),
    ],
)
def test_what_cannot_be_called(line: str, says: str) -> None:
    with pytest.raises(OperandError, match=says):
        go(f"{line}\nexit\n.func f\nret", runtime_calls={"given": lambda *x: ()})


def test_functions_that_the_machine_provides() -> None:
    seen: list[Any] = []

    def given(batch: object, site: object, arguments: object, lanes: Any) -> tuple[()]:
        seen.append((str(site), arguments, int(lanes.sum())))
        return ()

    go("setp.lt.u32 p, lane, 5\n@p call given\nexit", threads=32, runtime_calls={"given": given})
    assert seen == [("program.ptx:2: call", (), 5)]


def test_arguments_and_results_lie_in_frames() -> None:
    """A recursion that gives its argument and takes its result in memory, with a variable of its own between."""
    file, _ = go("""
        and.b32 z, lane, 7
        st.local.b32 frame+8, z
        call fib, (8:4), (12:4)
        ld.local.b32 x, frame+12
        exit
        .func fib recursive y
        ld.local.b32 y, frame
        setp.lt.u32 p, y, 2
        @p bra least
        sub.u32 y, y, 1
        st.local.b32 frame+16, y
        call fib, (16:4), (20:4)
        sub.u32 y, y, 1
        st.local.b32 frame+16, y
        call fib, (16:4), (24:4)
        ld.local.b32 y, frame+20
        ld.local.b32 z, frame+24
        add.u32 y, y, z
        least:
        st.local.b32 frame+4, y
        ret
    """, threads=40, parameters={"": 16, "fib": (((0, 4),), ((4, 4),), 28)})  # fmt: skip
    numbers = [0, 1]
    while len(numbers) < 8:
        numbers.append(numbers[-1] + numbers[-2])
    assert file.read("x").reshape(-1)[:40].tolist() == [numbers[n % 8] for n in range(40)]


def test_a_frame_is_new_at_every_call() -> None:
    text = """
        call f
        call f
        exit
        .func f
        {}
        st.local.b32 frame, lane
        ld.local.b32 x, frame
        ret
    """
    go(text.format(""), parameters={"f": ((), (), 16)})
    with pytest.raises(HazardError, match=r"program.ptx:5: ld.local.b32: unwritten"):
        go(text.format("ld.local.b32 x, frame"), parameters={"f": ((), (), 16)})
    with pytest.raises(HazardError, match=r"program.ptx:5: st.local.b32: (stack|bounds)"):
        go(text.format("st.local.b32 frame+16, lane"), parameters={"f": ((), (), 16)})


def test_unwritten_arguments_may_be_passed_on() -> None:
    go("call f, (0:8), ()\nexit\n.func f\nret", parameters={"": 8, "f": (((0, 8),), (), 8)})


def test_frames_that_grow_without_end() -> None:
    with pytest.raises(LimitError, match=r"f is called with 127 calls .*frames take \d+ bytes, expected 524288"):
        go("call f\n.func f\ncall f\nret", threads=32, parameters={"f": ((), (), 4096 + 16)})


def test_what_the_machine_provides_takes_and_gives_bytes() -> None:
    def twice(batch: object, site: object, arguments: Any, lanes: Any) -> Any:
        (word,) = arguments
        return ((word.view(np.uint32) * 2).view(np.uint8),)

    file, _ = go("""
        st.local.b32 frame, lane
        call twice, (0:4), (4:4)
        ld.local.b32 x, frame+4
    """, parameters={"": 8}, runtime_calls={"twice": twice})  # fmt: skip
    assert file.read("x").reshape(-1).tolist() == (2 * LANE).tolist()
    with pytest.raises(OperandError, match="call of twice: a result of 8 bytes; got 4"):
        go("st.local.b32 frame, lane\ncall twice, (0:4), (8:8)", parameters={"": 16}, runtime_calls={"twice": twice})
