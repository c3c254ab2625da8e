//! Exact decimals, kept as text: canonical form, equality by value, whether a number is an integer.
//!
//! Two readers that round differently are two different messages, so nothing here goes through a float
//! (`9007199254740993` is not `9007199254740992`, `1.0` is `1`). Work and memory are linear in the length of the text:
//! an exponent is never expanded into zeros.

use std::cmp::Ordering;

#[cfg(test)]
mod tests;

/// A number that has no canonical form: its exponent does not fit 64 bits, or the text is not a JSON number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a number whose decimal exponent fits 64 bits")]
pub struct Unrepresentable;

/// The canonical text of a number: `D` or `DeN`, with `-` in front when negative.
///
/// `D` has neither leading nor trailing zeros and `N` is a non-zero integer, so equal values have equal texts: `100` is
/// `1e2`, `1.50` is `15e-1`, every zero is `0`. `None` when the number is [`Unrepresentable`].
#[must_use]
pub fn canonical(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    write_canonical(&mut out, text).ok()?;
    String::from_utf8(out).ok()
}

/// Appends what [`canonical`] returns to `out`.
///
/// # Errors
/// [`Unrepresentable`]; nothing was appended then.
pub fn write_canonical(out: &mut Vec<u8>, text: &str) -> Result<(), Unrepresentable> {
    let number = Decimal::parse(text).ok_or(Unrepresentable)?;
    if number.is_zero() {
        out.push(b'0');
        return Ok(());
    }
    let Exponent::Exact(exponent) = number.exponent else { return Err(Unrepresentable) };
    let exponent = i64::try_from(exponent).map_err(|_| Unrepresentable)?;
    if number.negative {
        out.push(b'-');
    }
    out.extend_from_slice(number.whole);
    out.extend_from_slice(number.fraction);
    if exponent != 0 {
        out.extend_from_slice(format!("e{exponent}").as_bytes());
    }
    Ok(())
}

/// Whether two JSON numbers are the same value: `1e3` and `1000.0` are, `1` and `1.0000000000000001` are not.
///
/// Exact up to exponents of 30 digits; beyond that a number equals only itself, written the same. Texts that are not
/// JSON numbers equal nothing.
#[must_use]
pub fn equal(a: &str, b: &str) -> bool {
    if let (Some(a), Some(b)) = (plain(a), plain(b)) {
        return a == b;
    }
    let (Some(left), Some(right)) = (Decimal::parse(a), Decimal::parse(b)) else { return false };
    if left.is_zero() || right.is_zero() {
        return left.is_zero() && right.is_zero();
    }
    match (left.exponent, right.exponent) {
        (Exponent::Exact(x), Exponent::Exact(y)) => {
            x == y && left.negative == right.negative && left.len() == right.len() && left.digits().eq(right.digits())
        }
        _ => a == b,
    }
}

/// Whether a JSON number is an integer by value, as JSON Schema has it: `1.0` and `1e3` are, `1.5` and `1e-3` are not.
#[must_use]
pub fn is_integer(text: &str) -> bool {
    plain(text).is_some()
        || Decimal::parse(text).is_some_and(|number| {
            number.is_zero()
                || match number.exponent {
                    Exponent::Exact(exponent) => exponent >= 0,
                    Exponent::Huge { negative } => !negative,
                }
        })
}

/// The value of a number of at most 18 digits and nothing else, which is nearly every one; `None` for all others.
#[inline]
fn plain(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 || (digits.len() > 1 && digits.starts_with(b"0")) {
        return None;
    }
    let mut value = 0_i64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    Some(if negative { -value } else { value })
}

/// The exact order of two JSON numbers; `None` when one of them is no JSON number or has an exponent of more than 30
/// digits. Linear in the length of the texts.
#[must_use]
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (plain(a), plain(b)) {
        return Some(a.cmp(&b));
    }
    let (left, right) = (Decimal::parse(a)?, Decimal::parse(b)?);
    let (sign, other) = (left.sign(), right.sign());
    if sign != other || sign == 0 {
        return Some(sign.cmp(&other));
    }
    // Without zeros at their ends, digits that begin at the same place compare like words.
    let magnitude = left.leading()?.cmp(&right.leading()?).then_with(|| left.digits().cmp(right.digits()));
    Some(if left.negative { magnitude.reverse() } else { magnitude })
}

/// Whether `value` is `divisor` times an integer, exactly; `None` when one of them is no JSON number, has an exponent of
/// more than 30 digits, or when the divisor is zero or has digits that do not fit 64 bits.
#[must_use]
pub fn is_multiple_of(value: &str, divisor: &str) -> Option<bool> {
    let (value, divisor) = (Decimal::parse(value)?, Decimal::parse(divisor)?);
    let modulus = divisor
        .digits()
        .try_fold(0_u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0'))))?;
    let modulus = u128::from(modulus);
    if modulus == 0 {
        return None;
    }
    if value.is_zero() {
        return Some(true);
    }
    let (Exponent::Exact(dividend), Exponent::Exact(exponent)) = (value.exponent, divisor.exponent) else {
        return None;
    };
    // A negative difference asks for digits that do not end in zero to divide by ten.
    let Ok(shift) = u128::try_from(dividend.saturating_sub(exponent)) else { return Some(false) };
    // Both factors are below a modulus of 64 bits: no product leaves 128.
    let rest = value.digits().fold(0_u128, |rest, digit| (rest * 10 + u128::from(digit.wrapping_sub(b'0'))) % modulus);
    // Ten has no other factors than two and five, and below 2^64 no number has either 64 times: beyond that, more tens
    // divide by nothing more.
    Some((rest * power_of_ten(shift.min(64), modulus)).is_multiple_of(modulus))
}

/// 10^`exponent` modulo `modulus`, which is neither zero nor beyond 64 bits.
fn power_of_ten(mut exponent: u128, modulus: u128) -> u128 {
    let (mut power, mut base) = (1 % modulus, 10 % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    power
}

/// A power of ten.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exponent {
    Exact(i128),
    /// More than [`EXPONENT_DIGITS`] digits: farther from zero than any text is long.
    Huge {
        negative: bool,
    },
}

/// Exponents of up to this many digits are computed with; the sum with any length of text stays far inside `i128`.
const EXPONENT_DIGITS: usize = 30;

/// ±(`whole` followed by `fraction`) × 10^`exponent`, where the digits neither begin nor end with a zero.
struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: Exponent,
}

impl<'a> Decimal<'a> {
    /// Takes apart a number of RFC 8259 §6; `None` for any other text.
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.as_bytes();
        let (negative, text) = match text.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, rest) = split_digits(text);
        if whole.is_empty() || (whole.len() > 1 && whole.starts_with(b"0")) {
            return None;
        }
        let (fraction, rest) = match rest.strip_prefix(b".") {
            Some(rest) => Some(split_digits(rest)).filter(|(digits, _)| !digits.is_empty())?,
            None => (&[][..], rest),
        };
        let exponent = parse_exponent(rest)?;
        Some(Self { negative, whole, fraction, exponent }.normalized())
    }

    /// Strips the zeros at both ends of the digits and moves what that is worth into the exponent.
    fn normalized(mut self) -> Self {
        self.fraction = trim_end_zeros(self.fraction);
        self.shift(self.fraction.len(), true);
        if self.fraction.is_empty() {
            let digits = trim_end_zeros(self.whole);
            self.shift(self.whole.len().saturating_sub(digits.len()), false);
            self.whole = digits;
        }
        self.whole = trim_start_zeros(self.whole);
        if self.whole.is_empty() {
            self.fraction = trim_start_zeros(self.fraction);
        }
        self
    }

    fn shift(&mut self, places: usize, down: bool) {
        if let (Exponent::Exact(exponent), Ok(places)) = (&mut self.exponent, i128::try_from(places)) {
            *exponent = if down { exponent.saturating_sub(places) } else { exponent.saturating_add(places) };
        }
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// -1, 0 or 1.
    fn sign(&self) -> i8 {
        match (self.is_zero(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// The power of ten that the first digit stands below.
    fn leading(&self) -> Option<i128> {
        let Exponent::Exact(exponent) = self.exponent else { return None };
        Some(exponent.saturating_add(i128::try_from(self.len()).ok()?))
    }

    fn len(&self) -> usize {
        self.whole.len().saturating_add(self.fraction.len())
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).copied()
    }
}

/// `eN`, `EN` with an optional sign, or nothing at all.
fn parse_exponent(text: &[u8]) -> Option<Exponent> {
    let Some(text) = text.strip_prefix(b"e").or_else(|| text.strip_prefix(b"E")) else {
        return text.is_empty().then_some(Exponent::Exact(0));
    };
    let (negative, text) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let (digits, rest) = split_digits(text);
    if digits.is_empty() || !rest.is_empty() {
        return None;
    }
    let digits = trim_start_zeros(digits);
    if digits.len() > EXPONENT_DIGITS {
        return Some(Exponent::Huge { negative });
    }
    let magnitude = digits.iter().fold(0_i128, |value, digit| value * 10 + i128::from(digit - b'0'));
    Some(Exponent::Exact(if negative { -magnitude } else { magnitude }))
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, &[]))
}

fn trim_start_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.get(zeros..).unwrap_or_default()
}

fn trim_end_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    digits.get(..digits.len().saturating_sub(zeros)).unwrap_or_default()
}
