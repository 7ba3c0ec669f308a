/** A figure for people: three digits, and thousands apart. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const digits = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.min(3, Math.max(0, 2 - digits));
  const rounded = digits > 2 ? Number(value.toPrecision(3)) : value;
  return rounded.toLocaleString('en', {
    minimumFractionDigits: Number.isInteger(value) ? 0 : decimals,
    maximumFractionDigits: decimals,
  });
}
