/**
 * A phone number as `+` and digits, or digits alone: what people type between the digits (spaces,
 * hyphens, dots, brackets) is left out. Undefined where it holds anything else, or is not 7 to 15
 * digits long, the most an international number has.
 */
export function normalisePhoneNumber(typed: unknown): string | undefined {
  if (typeof typed !== 'string' || typed.length > 40) return undefined;
  const digits = typed.replace(/[\s().-]/g, '');
  return /^\+?\d{7,15}$/.test(digits) ? digits : undefined;
}
