/**
 * A field of a fault, as the emulator describes it.
 * @typedef {Pick<import('../src/faults/fault-plan.js').FaultField, 'label' | 'kind' | 'options' | 'value'>
 *   & { name: string, placeholder?: string }} Field
 */

/** The fields that set how often a fault applies. If both are empty, the fault always applies. @type {Field[]} */
export const TRIGGER = [
  { name: 'next', label: 'only the next … times', kind: 'number', placeholder: 'always' },
  { name: 'probability', label: 'probability, 0 to 1', kind: 'number', placeholder: 'always' },
];

/**
 * Formats a field's value for its text box.
 *
 * @param {Field} field
 * @param {any} value
 */
export function showField(field, value) {
  if (value === undefined) return '';
  if (field.kind === 'json') return JSON.stringify(value);
  if (Array.isArray(value)) return value.join(field.kind === 'list' ? ', ' : '-');
  return String(value);
}

/**
 * Converts typed text to a value of the fault plan, or to undefined if the text is empty. The emulator validates the
 * value.
 *
 * @param {Field} field
 * @param {string} typed
 * @throws {SyntaxError} for invalid JSON
 */
export function readField(field, typed) {
  const text = typed.trim();
  if (field.kind === 'list') return text === '' ? [] : text.split(',').map((ms) => number(ms));
  if (text === '') return undefined;
  if (field.kind === 'number') return number(text);
  if (field.kind === 'json') return JSON.parse(text);
  if (field.kind === 'delay') {
    const [min, max] = text.split('-').map((ms) => number(ms));
    return max === undefined ? min : [min, max];
  }
  // Retry-After is either a number of seconds, or the complete header value.
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** Converts text to a number. Returns other text unchanged, so that the emulator reports the error. */
function number(text) {
  const trimmed = text.trim();
  return trimmed === '' || Number.isNaN(Number(trimmed)) ? trimmed : Number(trimmed);
}
