// Numbers as people write them, to codes and back: the values that the command line takes too.
//
// A list is values between commas or blanks: decimals (0.5, 1e-3), powers (2^-24, 3*2^-24), fractions (1/3), codes
// (0x3c00), inf, nan, and `6x0` for six of one.
import { bitLength, finite, roundedMagnitude, unpack } from "./numbers.js";

export class ValueRefused extends Error {}

// Codes of k values: one that is written stands for all, and of several the rest is zero; and how many were rounded.
export function readList(text, fmt, k) {
  const read = [];
  for (const word of text.split(/[\s,;]+/).filter(Boolean)) {
    const [, count, number] = /^(?!0x)(\d{1,7})x(.+)$/i.exec(word) ?? [null, "1", word];
    const value = readValue(number, fmt);
    if (read.length + Number(count) > k) throw new ValueRefused(`more than ${k} ${k === 1 ? "value" : "values"}`);
    for (let i = 0; i < Number(count); i += 1) read.push(value);
  }
  const codes = read.map((value) => value.code);
  const rest = codes.length === 1 ? codes[0] : 0n;
  while (codes.length < k) codes.push(rest);
  return { codes, rounded: read.filter((value) => value.rounded).length };
}

// One value's code, and whether it had to be rounded.
export function readValue(word, fmt) {
  if (/^0x[0-9a-f]+$/i.test(word)) {
    const code = BigInt(word);
    if (code > fmt.mask) throw new ValueRefused(`${shown(word)} does not fit the ${fmt.bits} bits of ${fmt.name}`);
    return { code, rounded: false };
  }
  const special = /^([+-]?)(inf(?:inity)?|nan)$/i.exec(word);
  if (special) return { code: specialCode(special, word, fmt), rounded: false };
  const [numerator, denominator] = rational(word);
  if (fmt.integer) return { code: integerCode(numerator, denominator, word, fmt), rounded: false };
  const negative = word.startsWith("-") && fmt.signed;
  if (numerator < 0n && !fmt.signed) throw new ValueRefused(`${fmt.name} has no sign; got ${shown(word)}`);
  const exact = quotient(numerator < 0n ? -numerator : numerator, denominator, negative ? 1 : 0);
  const code = encode(exact, fmt);
  if (code === null || (fmt.overflow === "saturate" && above(exact, unpack(fmt, fmt.max_code))))
    throw new ValueRefused(`${shown(word)} is beyond ${written(unpack(fmt, fmt.max_code))}, the largest ${fmt.name}`);
  return { code, rounded: !equal(unpack(fmt, code), exact) };
}

function specialCode([, sign, name], word, fmt) {
  let code = /^nan/i.test(name) ? fmt.nan_code : fmt.inf_code;
  if (fmt.name === "f64" && code === fmt.nan_code) code = 0x7ff8000000000000n; // Python's and everybody's
  if (code === null || code === undefined)
    throw new ValueRefused(`${fmt.name} has no ${word.replace(/^[+-]/, "")}`);
  return sign === "-" ? code | fmt.sign_bit : code;
}

function integerCode(numerator, denominator, word, fmt) {
  if (numerator % denominator) throw new ValueRefused(`${shown(word)} is not an integer, as ${fmt.name} needs`);
  const value = numerator / denominator;
  if (value < fmt.least || value > fmt.greatest) {
    throw new ValueRefused(`${shown(word)} does not fit ${fmt.name}: ${fmt.least} to ${fmt.greatest}`);
  }
  return value & fmt.mask;
}

// A text as numerator and denominator.
function rational(word) {
  const power = word.replace(/^([+-]?)2\^/, "$11*2^");
  const found = /^([+-]?)(\d+\.?\d*|\.\d+)(?:e([+-]?\d{1,4}))?(?:\*2\^([+-]?\d{1,5})|\/(\d+))?$/i.exec(power);
  if (!found) refuse(word);
  const [, sign, digits, ten = "0", two = "0", below = "1"] = found;
  const [whole, places = ""] = digits.split(".");
  if (Math.abs(ten) > 400 || Math.abs(two) > 1200 || /^0+$/.test(below)) refuse(word);
  const shift = Number(ten) - places.length;
  const raised = (exponent, base) => base ** BigInt(Math.max(0, exponent));
  const numerator = BigInt(whole + places) * raised(shift, 10n) * raised(Number(two), 2n);
  const denominator = BigInt(below) * raised(-shift, 10n) * raised(-Number(two), 2n);
  return [sign === "-" ? -numerator : numerator, denominator];
}

// What was typed, as a sentence can quote it.
const shown = (word) => (word.length > 40 ? `${word.slice(0, 39)}\u2026` : word);

function refuse(word) {
  throw new ValueRefused(`${shown(word)} is not a number; write 0.5, 2^-24, 3*2^-24, 1/3, 0x3c00, inf, nan, or 6x0 for six`);
}

// A quotient with more bits than any format has; a last one says whether there was more.
function quotient(numerator, denominator, sign) {
  if (!numerator) return finite(sign);
  const shift = Math.max(0, 160 - (bitLength(numerator) - bitLength(denominator)));
  const whole = (numerator << BigInt(shift)) / denominator;
  const rest = (numerator << BigInt(shift)) % denominator;
  return finite(sign, (whole << 1n) | (rest ? 1n : 0n), -shift - 1);
}

// To nearest even; null for what is too large.
export function encode(number, fmt) {
  const sign = number.sign ? fmt.sign_bit : 0n;
  let magnitude = number.significand ? roundedMagnitude(number, fmt, "rn", fmt.fraction_bits) : 0n;
  if (!fmt.subnormals) {
    magnitude -= 1n << BigInt(fmt.fraction_bits);
    if (magnitude < 0n) magnitude = 0n;
  }
  magnitude <<= BigInt(fmt.padding);
  return magnitude > fmt.max_code ? null : sign | magnitude;
}

const magnitudes = (x, y) =>
  [x, y].map((n) => n.significand << BigInt(n.exponent - Math.min(x.exponent, y.exponent)));

function equal(x, y) {
  const [one, other] = magnitudes(x, y);
  return one === other;
}

function above(x, y) {
  const [one, other] = magnitudes(x, y);
  return one > other;
}

// A number as people read it: a power of two where it is one, else the shortest decimal that names it.
export function written(number) {
  const sign = number.sign ? "\u2212" : "";
  if (number.kind === "nan") return "NaN";
  if (number.kind === "infinity") return `${sign}\u221e`;
  if (!number.significand) return `${sign}0`;
  const zeros = /0*$/.exec(number.significand.toString(2))[0].length;
  const odd = number.significand >> BigInt(zeros);
  const exponent = number.exponent + zeros;
  const bits = bitLength(odd);
  if (odd === 1n && (exponent < -4 || exponent > 16)) return sign + power(exponent);
  if (exponent >= 0 && bits + exponent <= 60) return sign + (odd << BigInt(exponent)).toString();
  if (odd < 16n && (exponent < -12 || exponent > 60)) return `${sign}${odd}\u00b7${power(exponent)}`;
  return sign + decimalOf(odd, exponent, bits);
}

// The same in few characters.
export function briefly(number) {
  const text = written(number);
  const value = Number(text.replace("\u2212", "-"));
  return text.length > 12 && Number.isFinite(value) ? `\u2248${minus(Number(value.toPrecision(4)))}` : text;
}

// 2 with a raised exponent.
export const power = (exponent) => `2${[...String(exponent)].map((digit) => RAISED[digit]).join("")}`;
const RAISED = {
  "-": "\u207b",
  0: "\u2070",
  1: "\u00b9",
  2: "\u00b2",
  3: "\u00b3",
  4: "\u2074",
  5: "\u2075",
  6: "\u2076",
  7: "\u2077",
  8: "\u2078",
  9: "\u2079",
};

const minus = (x) => String(x).replace("-", "\u2212");

function decimalOf(odd, exponent, bits) {
  const drop = Math.max(0, bits - 53);
  const head = Number(odd >> BigInt(drop));
  const scale = exponent + drop;
  const value = head * 2 ** Math.max(scale, -1000) * 2 ** Math.min(0, scale + 1000);
  const about = drop ? "\u2248" : "";
  if (Number.isFinite(value) && value >= 2 ** -1022) return about + minus(value);
  const top = Math.min(bits, 53) - 1; // beyond doubles: 1.234 times a power of two
  return `\u2248${Number((head / 2 ** top).toPrecision(6))}\u00b7${power(scale + top)}`;
}

// Digits of a code.
export const hex = (code, fmt) => `0x${code.toString(16).padStart(Math.ceil(fmt.bits / 4), "0")}`;

// A code's bits by field: [["sign", "0"], ["exponent", "01111111"], ...].
export function fieldsOf(code, fmt) {
  const bits = code.toString(2).padStart(fmt.bits, "0");
  if (fmt.integer) return [["fraction", bits]];
  const widths = [
    ["sign", fmt.signed ? 1 : 0],
    ["exponent", fmt.exponent_bits],
    ["fraction", fmt.fraction_bits],
    ["padding", fmt.padding],
  ];
  let at = 0;
  return widths.map(([name, width]) => [name, bits.slice(at, (at += width))]).filter(([, text]) => text);
}
