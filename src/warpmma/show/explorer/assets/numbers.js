// Exact numbers, and codes of formats: as `warpmma.formats` and the head of `warpmma.arithmetic.exact.reference` have them.
//
// A number is {kind: "finite" | "infinity" | "nan", sign: 0 | 1, significand: BigInt, exponent: Number}; a finite one
// is (-1)^sign * significand * 2^exponent. Codes are BigInt. Formats are rows of the page's data, by `formatNamed`.

export const bitLength = (x) => (x ? x.toString(2).length : 0);

export function finite(sign = 0, significand = 0n, exponent = 0) {
  return { kind: "finite", sign, significand, exponent };
}

const special = (kind, sign = 0) => ({ kind, sign, significand: 0n, exponent: 0 });

// Formats as the arithmetic takes them: integers of codes are BigInt.
export function prepared(name, row) {
  const bits = BigInt(row.bits);
  const fmt = { name, ...row, mask: (1n << bits) - 1n };
  if (row.integer) {
    fmt.least = row.signed ? -(1n << (bits - 1n)) : 0n;
    fmt.greatest = fmt.least + fmt.mask;
    return fmt;
  }
  for (const code of ["nan_code", "inf_code", "max_code"])
    fmt[code] = row[code] === null ? null : BigInt(row[code]);
  fmt.sign_bit = row.signed ? 1n << (bits - 1n) : 0n;
  return fmt;
}

// A code's number.
export function unpack(fmt, code) {
  if (fmt.integer) {
    const value = integerValue(fmt, code);
    return finite(value < 0n ? 1 : 0, value < 0n ? -value : value, 0);
  }
  const sign = code & fmt.sign_bit ? 1 : 0;
  const magnitude = (code & ~fmt.sign_bit) >> BigInt(fmt.padding);
  const width = BigInt(fmt.fraction_bits);
  const field = magnitude >> width;
  const fraction = magnitude & ((1n << width) - 1n);
  const ones = (1n << BigInt(fmt.exponent_bits)) - 1n;
  if (fmt.nan === "ieee" && field === ones) return special(fraction ? "nan" : "infinity", sign);
  if (fmt.nan === "ones" && magnitude === (ones << width) + (1n << width) - 1n) return special("nan", sign);
  const hidden = field > 0n || !fmt.subnormals;
  const exponent = (hidden ? Number(field) : 1) - fmt.bias;
  return finite(sign, fraction + (hidden ? 1n << width : 0n), exponent - fmt.fraction_bits);
}

// Two's complement where signed.
export function integerValue(fmt, code) {
  return fmt.signed && code >> (BigInt(fmt.bits) - 1n) ? code - (1n << BigInt(fmt.bits)) : code;
}

export function exactProduct(x, y) {
  const sign = x.sign ^ y.sign;
  if (x.kind === "nan" || y.kind === "nan") return special("nan");
  if (x.kind === "infinity" || y.kind === "infinity") {
    const zero = [x, y].some((n) => n.kind === "finite" && !n.significand);
    return zero ? special("nan") : special("infinity", sign);
  }
  return finite(sign, x.significand * y.significand, x.exponent + y.exponent);
}

// Rule 14 for the sign of a sum that is zero.
export function exactSum(x, y, rounding = "rn") {
  const infinite = [x, y].filter((n) => n.kind === "infinity");
  if (x.kind === "nan" || y.kind === "nan" || (infinite.length === 2 && x.sign !== y.sign)) return special("nan");
  if (infinite.length) return infinite[0];
  const exponent = Math.min(x.exponent, y.exponent);
  const total = signedAt(x, exponent) + signedAt(y, exponent);
  if (total) return fromInteger(total, exponent);
  const both = !x.significand && !y.significand && x.sign === y.sign;
  return finite(both ? x.sign : rounding === "rm" ? 1 : 0, 0n, exponent);
}

// A finite number as a signed integer of units of 2^exponent, which must not be above its own.
export function signedAt(x, exponent) {
  const magnitude = x.significand << BigInt(x.exponent - exponent);
  return x.sign ? -magnitude : magnitude;
}

export const fromInteger = (value, exponent) => finite(value < 0n ? 1 : 0, value < 0n ? -value : value, exponent);

// Sum of finite numbers, exactly; what explanations add up.
export function total(numbers) {
  const exponent = Math.min(0, ...numbers.map((n) => n.exponent));
  return fromInteger(
    numbers.reduce((sum, n) => sum + signedAt(n, exponent), 0n),
    exponent,
  );
}

export const negated = (x) => ({ ...x, sign: 1 - x.sign });

// A code of `fmt` with `bits` fraction bits; what is too large becomes what IEEE has it, or infinity.
export function rounded(x, fmt, rounding, { bits = fmt.fraction_bits, toInfinity = false } = {}) {
  const sign = x.sign ? fmt.sign_bit : 0n;
  if (x.kind === "nan") return fmt.nan_code;
  if (x.kind === "infinity") return sign | fmt.inf_code;
  if (!x.significand) return sign;
  let magnitude = roundedMagnitude(x, fmt, rounding, bits);
  magnitude <<= BigInt(fmt.fraction_bits - bits);
  if (magnitude >= fmt.inf_code) {
    const outward = toInfinity || rounding === "rn" || rounding === (x.sign ? "rm" : "rp");
    magnitude = outward ? fmt.inf_code : fmt.max_code;
  }
  return sign | magnitude;
}

// Exponent and fraction fields as one integer: so a carry out of the fraction needs no care.
export function roundedMagnitude(x, fmt, rounding, bits) {
  const unit = Math.max(x.exponent + bitLength(x.significand) - 1, fmt.emin) - bits;
  const drop = unit - x.exponent;
  let kept, rest, half;
  if (drop <= 0) {
    [kept, rest, half] = [x.significand << BigInt(-drop), 0n, 1n];
  } else {
    kept = x.significand >> BigInt(drop);
    rest = x.significand - (kept << BigInt(drop));
    half = 1n << BigInt(drop - 1);
  }
  const away = {
    rn: rest > half || (rest === half && (kept & 1n) === 1n),
    rz: false,
    rm: x.sign === 1 && rest > 0n,
    rp: x.sign === 0 && rest > 0n,
  }[rounding];
  return (BigInt(unit + bits - fmt.emin) << BigInt(bits)) + kept + (away ? 1n : 0n);
}
