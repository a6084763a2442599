"""Forms of instructions for random programs: all that compute on registers only, by target, with their operands.

A line of `FAMILIES` is a mnemonic, whose alternatives stand in braces, and its operands: results before the colon, two
that are written `d|p` with a comma between. `h`, `r` and `d` are registers of 16, 32 and 64 bits, `p` predicates, `!`
one that may be negated; `t` is the register of the mnemonic's last type and `u` of the one before it (`T`, `U` where
that may have 8 bits); `/` is a divisor, never 0 nor negative; `n` an immediate of 8 bits; `8` and `5` registers with so
many bits, `o` one from -32 to 31.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import cache

__all__ = ["FAMILIES", "Form", "forms"]

_INT = "u16,s16,u32,s32,u64,s64"
_CMP = "eq,ne,lt,le,gt,ge"
_UNORDERED = "equ,neu,ltu,leu,gtu,geu,num,nan"
_SMALL = "u8,s8,u16,s16,u32,s32,u64,s64"

FAMILIES = {"sm_80": f"""
{{add,sub,min,max}}.{{{_INT}}} t:tt
{{add,sub}}.sat.s32 r:rr
mul.{{lo,hi}}.{{{_INT}}} t:tt
mul.wide.{{u16,s16}} r:tt
mul.wide.{{u32,s32}} d:tt
mad.{{lo,hi}}.{{{_INT}}} t:ttt
mad.wide.{{u16,s16}} r:ttr
mad.wide.{{u32,s32}} d:ttd
mad.hi.sat.s32 r:rrr
mul24.{{lo,hi}}.{{u32,s32}} r:rr
mad24.{{lo,hi}}.{{u32,s32}} r:rrr
mad24.hi.sat.s32 r:rrr
sad.{{{_INT}}} t:ttt
{{div,rem}}.{{{_INT}}} t:t/
{{abs,neg}}.{{s16,s32,s64}} t:t
{{popc,clz}}.{{b32,b64}} r:t
bfind{{,.shiftamt}}.{{u32,s32,u64,s64}} r:t
brev.{{b32,b64}} t:t
fns.b32 r:r5o
bfe.{{u32,s32,u64,s64}} t:t88
bfi.{{b32,b64}} t:tt88
szext.{{clamp,wrap}}.{{u32,s32}} r:rr
bmsk.{{clamp,wrap}}.b32 r:rr
dp4a.{{u32,s32}}.{{u32,s32}} r:rrr
dp2a.{{lo,hi}}.{{u32,s32}}.{{u32,s32}} r:rrr
{{and,or,xor}}.{{b16,b32,b64}} t:tt
{{not,cnot}}.{{b16,b32,b64}} t:t
{{and,or,xor}}.pred p:pp
not.pred p:p
lop3.b32 r:rrrn
lop3.{{and,or}}.b32 r,p:rrrn!
shf.{{l,r}}.{{wrap,clamp}}.b32 r:rrr
shl.{{b16,b32,b64}} t:tr
shr.{{b16,b32,b64,{_INT}}} t:tr
prmt.b32{{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}} r:rrr
v{{add,sub,absdiff,min,max}}.{{u32,s32}}.{{u32,s32}}.{{u32,s32}}{{,.sat}} r:rr
v{{add,sub,absdiff,min,max}}.{{u32,s32}}.{{u32,s32}}.{{u32,s32}}{{,.sat}}.{{add,min,max}} r:rrr
v{{shl,shr}}.{{u32,s32}}.{{u32,s32}}.u32{{,.sat}}.{{clamp,wrap}} r:rr
vmad.{{u32,s32}}.{{u32,s32}}.{{u32,s32}}{{,.sat}}{{,.shr7,.shr15}} r:rrr
vset.{{u32,s32}}.{{u32,s32}}.{{{_CMP}}} r:rr
v{{add,sub,avrg,absdiff,min,max}}{{2,4}}.{{u32,s32}}.{{u32,s32}}.{{u32,s32}}{{,.sat,.add}} r:rrr
vset{{2,4}}.{{u32,s32}}.{{u32,s32}}.{{{_CMP}}}{{,.add}} r:rrr
{{add,sub,mul}}{{.rn,.rz,.rm,.rp}}{{,.ftz}}{{,.sat}}.f32 r:rr
fma{{.rn,.rz,.rm,.rp}}{{,.ftz}}{{,.sat}}.f32 r:rrr
{{add,sub,mul}}{{.rn,.rz,.rm,.rp}}.f64 d:dd
fma{{.rn,.rz,.rm,.rp}}.f64 d:ddd
{{div}}{{.rn,.rz,.rm,.rp,.approx,.full}}{{,.ftz}}.f32 r:rr
{{rcp,sqrt}}{{.rn,.rz,.rm,.rp,.approx}}{{,.ftz}}.f32 r:r
{{rsqrt,sin,cos,lg2,ex2}}.approx{{,.ftz}}.f32 r:r
tanh.approx.f32 r:r
div{{.rn,.rz,.rm,.rp}}.f64 d:dd
{{rcp,sqrt}}{{.rn,.rz,.rm,.rp}}.f64 d:d
{{rcp.approx.ftz,rsqrt.approx,rsqrt.approx.ftz}}.f64 d:d
{{min,max}}{{,.ftz}}{{,.NaN}}.f32 r:rr
{{min,max}}.f64 d:dd
{{abs,neg}}{{,.ftz}}.f32 r:r
{{abs,neg}}.f64 d:d
copysign.{{f32,f64}} t:tt
testp.{{finite,infinite,number,notanumber,normal,subnormal}}.{{f32,f64}} p:t
{{add,sub,mul}}.rn{{,.ftz}}{{,.sat}}.{{f16,f16x2}} t:tt
fma.rn{{,.ftz}}{{,.sat,.relu}}.{{f16,f16x2}} t:ttt
fma.rn{{,.relu}}.{{bf16,bf16x2}} t:ttt
{{min,max}}{{,.ftz}}{{,.NaN}}.{{f16,f16x2}} t:tt
{{min,max}}{{,.NaN}}.{{bf16,bf16x2}} t:tt
{{abs,neg}}{{,.ftz}}.{{f16,f16x2}} t:t
{{abs,neg}}.{{bf16,bf16x2}} t:t
{{ex2,tanh}}.approx.{{f16,f16x2}} t:t
setp.{{{_CMP}}}.{{{_INT}}} p:tt
setp.{{eq,ne}}.{{b16,b32,b64}} p:tt
setp.{{lo,ls,hi,hs}}.{{u16,u32,u64}} p:tt
setp.{{{_CMP},{_UNORDERED}}}{{,.ftz}}.{{f16,f32}} p:tt
setp.{{{_CMP},{_UNORDERED}}}.f64 p:tt
setp.{{{_CMP}}}.{{and,or,xor}}.{{{_INT}}} p,p:tt!
setp.{{{_CMP},{_UNORDERED}}}.{{and,or,xor}}.{{f32,f64}} p,p:tt!
setp.{{{_CMP},{_UNORDERED}}}.{{and,or,xor}}.f16 p:tt!
setp.{{{_CMP},{_UNORDERED}}}{{,.ftz}}.f16x2 p,p:tt
set.{{{_CMP}}}.{{u32,s32,f32}}.{{{_INT}}} r:tt
set.{{{_CMP},{_UNORDERED}}}{{,.ftz}}.{{u32,s32,f32}}.f32 r:tt
set.{{{_CMP},{_UNORDERED}}}.{{u32,s32,f32}}.f64 r:tt
set.{{{_CMP},{_UNORDERED}}}.{{and,or,xor}}.u32.{{f32,f64}} r:tt!
set.{{{_CMP}}}.{{and,or,xor}}.u32.s32 r:tt!
set.{{{_CMP},{_UNORDERED}}}{{,.ftz}}.{{f16,u16,s16,u32,s32}}.f16 u:tt
set.{{{_CMP},{_UNORDERED}}}{{,.ftz}}.f16x2.f16x2 r:tt
selp.{{b16,b32,b64,{_INT},f32,f64}} t:ttp
slct.{{b16,b32,b64,{_INT},f32,f64}}.s32 u:uur
slct.{{b16,b32,b64,u32,s64,f32}}{{,.ftz}}.f32 u:uur
mov.{{b16,b32,b64,{_INT},f32,f64}} t:t
mov.pred p:p
cvt.{{{_SMALL}}}.{{{_SMALL}}} U:T
cvt.sat.{{u8.s8,s8.u8}} U:T
cvt.sat.{{u8,s8}}.{{{_INT}}} U:T
cvt.sat.{{u16,u32,u64}}.{{s8,s16,s32,s64}} U:T
cvt.sat.{{s16.u16,s32.u32,s64.u64}} U:T
cvt.sat.{{u16,s16}}.{{u32,u64}} U:T
cvt.sat.{{s16.s32,s16.s64,s32.s64,u32.u64,s32.u64}} U:T
cvt{{.rni,.rzi,.rmi,.rpi}}{{,.ftz}}.{{{_SMALL}}}.f32 U:T
cvt{{.rni,.rzi,.rmi,.rpi}}{{,.sat}}.{{{_SMALL}}}.{{f16,f64}} U:T
cvt{{.rn,.rz,.rm,.rp}}{{,.sat}}.{{f16,f32,f64}}.{{{_SMALL}}} U:T
cvt{{.rni,.rzi,.rmi,.rpi}}{{,.ftz}}{{,.sat}}.f32.f32 t:t
cvt{{.rni,.rzi,.rmi,.rpi}}{{,.sat}}.{{f16.f16,f64.f64}} t:t
cvt{{,.ftz}}.sat.f32.f32 t:t
cvt{{.rn,.rz,.rm,.rp}}{{,.ftz}}{{,.sat}}.f32.f64 u:t
cvt{{.rn,.rz,.rm,.rp}}{{,.ftz}}{{,.sat}}.f16.f32 u:t
cvt{{.rn,.rz,.rm,.rp}}{{,.sat}}.f16.f64 u:t
cvt{{,.ftz}}{{,.sat}}.f32.f16 u:t
cvt{{,.sat}}.f64.{{f16,f32}} u:t
cvt{{.rn,.rz}}{{,.relu}}.bf16.f32 u:t
cvt{{.rn,.rz}}{{,.relu}}.{{f16x2,bf16x2}}.f32 u:tt
cvt.rna.tf32.f32 r:r
cvt.pack.sat.{{u16,s16}}.s32 r:rr
cvt.pack.sat.{{u8,s8,u4,s4,u2,s2}}.s32.b32 r:rrr
""", "sm_90": f"""
{{add,min,max}}.{{u16x2,s16x2}} r:rr
{{min,max}}.relu.{{s16x2,s32}} r:rr
{{add,sub,mul}}.rn.{{bf16,bf16x2}} t:tt
{{ex2}}.approx.ftz.{{bf16,bf16x2}} t:t
tanh.approx.{{bf16,bf16x2}} t:t
{{min,max}}{{,.ftz}}{{,.NaN}}.xorsign.abs.{{f32,f16,f16x2}} t:tt
{{min,max}}{{,.NaN}}.xorsign.abs.{{bf16,bf16x2}} t:tt
setp.{{{_CMP},{_UNORDERED}}}.bf16 p:tt
setp.{{{_CMP},{_UNORDERED}}}.bf16x2 p,p:tt
set.{{{_CMP},{_UNORDERED}}}.{{bf16,u16,u32}}.bf16 u:tt
cvt.f32.bf16 u:t
cvt.f64.bf16 u:t
cvt{{.rni,.rzi,.rmi,.rpi}}.{{{_INT}}}.bf16 u:t
cvt{{.rn,.rz,.rm,.rp}}.bf16.{{{_INT}}} u:t
cvt{{.rn,.rz,.rm,.rp}}.bf16.{{f16,f64}} u:t
cvt.rn.satfinite{{,.relu}}.{{e4m3x2,e5m2x2}}.f32 h:rr
cvt.rn.satfinite{{,.relu}}.{{e4m3x2,e5m2x2}}.f16x2 h:r
cvt.rn{{,.relu}}.f16x2.{{e4m3x2,e5m2x2}} r:h
cvt{{.rn,.rz}}{{,.relu}}.tf32.f32 r:r
"""}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """A mnemonic, its results and operands as letters, and whether results are written `d|p`."""

    mnemonic: str
    results: str
    operands: str
    paired: bool


def _register(type_: str) -> str:
    return "r" if type_.endswith("x2") else {"16": "h", "32": "r", "64": "d"}[type_.lstrip("bfust")]


def _form(mnemonic: str, operands: str) -> Form:
    types = [part for part in mnemonic.split(".") if re.fullmatch(r"([bfus]|bf|tf)(8|16|32|64)(x2)?", part)]
    named = {}
    for letter, type_ in zip("tu", types[::-1], strict=False):
        small = type_ in ("u8", "s8")
        named[letter] = "" if small else _register(type_)
        named[letter.upper()] = "r" if small else _register(type_)  # eight bits in a register of 32
    results, sources = operands.split(":")
    letters = ["".join(named.get(c, c) for c in part) for part in (results.replace(",", ""), sources)]
    return Form(mnemonic, letters[0], letters[1], "," in results)


def _expanded(line: str) -> list[str]:
    parts = re.split(r"\{([^}]*)\}", line)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


@cache
def forms(target: str) -> tuple[tuple[Form, ...], ...]:
    """Return the forms of a target, those of one family together."""
    return tuple(
        tuple(_form(*expanded.split()) for expanded in _expanded(line))
        for of, lines in FAMILIES.items() if int(of[3:]) <= int(target[3:])
        for line in lines.strip().splitlines()
    )  # fmt: skip
