/**
 * One number, word or text of a fault. `number`: a whole or broken number; `delay`: milliseconds, or
 * `min-max` of them; `list`: milliseconds, comma-separated; `json`: any JSON; `text`: as typed.
 * @typedef {{ name: string, label: string, kind: 'number' | 'delay' | 'list' | 'json' | 'text', value?: string } |
 *   { name: string, label: string, kind: 'choice', options: string[], value: string }} Field
 * @typedef {{ name: string, label: string, what: string, fields: Field[] }} Fault
 * @typedef {{ station: string, title: string, what: string, faults: Fault[] }} Station
 */

/** @type {Fault[]} */
const ANSWER = [
  {
    name: 'slow',
    label: 'Slow',
    what: 'The answer waits first. Goes with any other.',
    fields: [{ name: 'ms', label: 'milliseconds, or min-max', kind: 'delay', value: '2000' }],
  },
  {
    name: 'reset',
    label: 'Reset',
    what: 'The connection is reset without an answer.',
    fields: [
      {
        name: 'when',
        label: 'when the request took effect',
        kind: 'choice',
        options: ['before', 'after'],
        value: 'before',
      },
    ],
  },
  { name: 'unauthorized', label: '401', what: 'Refused, whatever was presented.', fields: [] },
  {
    name: 'error',
    label: '5xx',
    what: 'An error answer: down.',
    fields: [{ name: 'status', label: 'status', kind: 'number', value: '503' }],
  },
  {
    name: 'rateLimit',
    label: '429',
    what: 'Too many requests.',
    fields: [{ name: 'retryAfter', label: 'Retry-After', kind: 'text', value: '1' }],
  },
  { name: 'truncate', label: 'Truncated', what: 'Half of the answer, then it ends.', fields: [] },
  {
    name: 'oversize',
    label: 'Oversized',
    what: 'The answer grows by padding.',
    fields: [
      { name: 'bytes', label: 'bytes', kind: 'number', value: '16777216' },
      {
        name: 'encoding',
        label: 'encoding',
        kind: 'choice',
        options: ['identity', 'gzip'],
        value: 'identity',
      },
    ],
  },
];

/** Every fault the emulator knows, with what it takes beside how often it strikes. @type {Station[]} */
export const STATIONS = [
  {
    station: 'delivery',
    title: 'Deliveries',
    what: 'Webhooks on their way to the merchant.',
    faults: [
      {
        name: 'duplicate',
        label: 'Duplicate',
        what: 'The same event again at the same moment.',
        fields: [{ name: 'copies', label: 'further copies', kind: 'number', value: '1' }],
      },
      {
        name: 'reorder',
        label: 'Reorder',
        what: 'Held until several wait, then sent in another order.',
        fields: [
          { name: 'window', label: 'deliveries', kind: 'number', value: '4' },
          { name: 'maxWaitMs', label: 'at most, milliseconds', kind: 'number', value: '1000' },
        ],
      },
      {
        name: 'delay',
        label: 'Delay',
        what: 'Each delivery waits first.',
        fields: [{ name: 'ms', label: 'milliseconds, or min-max', kind: 'delay', value: '2000' }],
      },
      { name: 'drop', label: 'Drop', what: 'The event is never sent.', fields: [] },
      {
        name: 'tamperBody',
        label: 'Tamper with the body',
        what: 'Changed after it was signed.',
        fields: [
          {
            name: 'how',
            label: 'how',
            kind: 'choice',
            options: ['value', 'respace', 'truncate'],
            value: 'value',
          },
        ],
      },
      {
        name: 'tamperSignature',
        label: 'Tamper with the signature',
        what: 'The signature does not fit.',
        fields: [
          {
            name: 'how',
            label: 'how',
            kind: 'choice',
            options: ['digit', 'missing', 'malformed', 'scheme'],
            value: 'digit',
          },
        ],
      },
      {
        name: 'oldSecret',
        label: 'Old secret',
        what: "Signed with the secret before the last rotation, or a stranger's.",
        fields: [],
      },
      {
        name: 'redeliver',
        label: 'Redelivery schedule',
        what: "When a failed delivery is tried again. Off: the emulator's own --redeliver.",
        fields: [
          { name: '', label: 'waits in milliseconds', kind: 'list', value: '1000, 5000, 30000' },
        ],
      },
    ],
  },
  {
    station: 'token',
    title: 'Token endpoint',
    what: 'POST /v1/auth/token.',
    faults: [
      ...ANSWER,
      {
        name: 'lifetime',
        label: 'Short-lived tokens',
        what: 'Tokens live so long, and say so.',
        fields: [{ name: 'seconds', label: 'seconds', kind: 'number', value: '20' }],
      },
      {
        name: 'expiresIn',
        label: 'Odd expires_in',
        what: 'The field holds any JSON; left empty, it is left out.',
        fields: [{ name: 'value', label: 'JSON', kind: 'json', value: '"soon"' }],
      },
      {
        name: 'sameToken',
        label: 'Same token',
        what: 'The token issued before, until it expires.',
        fields: [],
      },
    ],
  },
  {
    station: 'api',
    title: 'Calls with a token',
    what: 'Every other call of the merchant.',
    faults: ANSWER,
  },
];

/** How often a fault strikes; both left empty: always. @type {Field[]} */
export const TRIGGER = [
  { name: 'next', label: 'only the next … times', kind: 'number' },
  { name: 'probability', label: 'probability, 0 to 1', kind: 'number' },
];

/**
 * A field's value as its text box shows it.
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
 * What was typed, as the fault plan takes it; undefined where nothing was. The emulator judges it.
 *
 * @param {Field} field
 * @param {string} typed
 * @throws {SyntaxError} for JSON that is none
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
  // Retry-After takes seconds as a number, or the header's text.
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** A number where it is one; else the text, for the emulator to say what is wrong with it. */
function number(text) {
  const trimmed = text.trim();
  return trimmed === '' || Number.isNaN(Number(trimmed)) ? trimmed : Number(trimmed);
}
