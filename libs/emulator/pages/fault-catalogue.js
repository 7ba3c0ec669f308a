/**
 * A field of a fault. `number`: an integer or a decimal; `delay`: milliseconds, or a range `min-max`; `list`: milliseconds,
 * separated by commas; `json`: any JSON; `text`: text as typed.
 * @typedef {{ name: string, label: string, kind: 'number' | 'delay' | 'list' | 'json' | 'text', value?: string } |
 *   { name: string, label: string, kind: 'choice', options: string[], value: string }} Field
 * A fault with `onlyOn` is either on or off: its value in the plan is `true`, without fields.
 * @typedef {{ name: string, label: string, description: string, fields: Field[], onlyOn?: boolean }} Fault
 * @typedef {{ target: string, title: string, description: string, faults: Fault[] }} FaultTarget
 */

/** @type {Fault[]} */
const RESPONSE_FAULTS = [
  {
    name: 'slow',
    label: 'Slow',
    description: 'Delays the response. Combines with any other fault.',
    fields: [{ name: 'ms', label: 'milliseconds, or min-max', kind: 'delay', value: '2000' }],
  },
  {
    name: 'reset',
    label: 'Reset',
    description: 'Resets the connection without a response.',
    fields: [
      {
        name: 'when',
        label: 'before or after the request takes effect',
        kind: 'choice',
        options: ['before', 'after'],
        value: 'before',
      },
    ],
  },
  { name: 'unauthorized', label: '401', description: 'Responds with 401.', fields: [] },
  {
    name: 'error',
    label: '5xx',
    description: 'Responds with a server error, as during an outage.',
    fields: [{ name: 'status', label: 'status', kind: 'number', value: '503' }],
  },
  {
    name: 'rateLimit',
    label: '429',
    description: 'Responds with "too many requests".',
    fields: [{ name: 'retryAfter', label: 'Retry-After', kind: 'text', value: '1' }],
  },
  { name: 'truncate', label: 'Truncated', description: 'Sends half of the response.', fields: [] },
  {
    name: 'oversize',
    label: 'Oversized',
    description: 'Pads the response to this size.',
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

/** All faults of the emulator with their own fields. @type {FaultTarget[]} */
export const FAULT_TARGETS = [
  {
    target: 'delivery',
    title: 'Deliveries',
    description: 'Webhook requests to the merchant.',
    faults: [
      {
        name: 'off',
        label: 'Outage',
        description: 'Sends nothing and keeps nothing for later, as during an outage.',
        fields: [],
        onlyOn: true,
      },
      {
        name: 'duplicate',
        label: 'Duplicate',
        description: 'Sends further copies of the same event at the same time.',
        fields: [{ name: 'copies', label: 'number of copies', kind: 'number', value: '1' }],
      },
      {
        name: 'reorder',
        label: 'Reorder',
        description:
          'Delays deliveries until several are waiting, then sends them in another order.',
        fields: [
          { name: 'window', label: 'number of deliveries', kind: 'number', value: '4' },
          {
            name: 'maxWaitMs',
            label: 'maximum wait in milliseconds',
            kind: 'number',
            value: '1000',
          },
        ],
      },
      {
        name: 'delay',
        label: 'Delay',
        description: 'Delays each delivery.',
        fields: [{ name: 'ms', label: 'milliseconds, or min-max', kind: 'delay', value: '2000' }],
      },
      { name: 'drop', label: 'Drop', description: 'Does not send the event.', fields: [] },
      {
        name: 'tamperBody',
        label: 'Tamper with the body',
        description: 'Changes the body after signing.',
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
        description: 'Makes the signature invalid.',
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
        description:
          'Signs with the secret before the last rotation, or with an unrelated secret if there was no rotation.',
        fields: [],
      },
      {
        name: 'redeliver',
        label: 'Redelivery schedule',
        description:
          "Times to wait before each further attempt of a failed delivery. Off: the emulator's --redeliver applies.",
        fields: [
          { name: '', label: 'waits in milliseconds', kind: 'list', value: '1000, 5000, 30000' },
        ],
      },
    ],
  },
  {
    target: 'token',
    title: 'Token endpoint',
    description: 'POST /v1/auth/token',
    faults: [
      ...RESPONSE_FAULTS,
      {
        name: 'lifetime',
        label: 'Short-lived tokens',
        description: 'Issues tokens with a shorter lifetime.',
        fields: [{ name: 'seconds', label: 'seconds', kind: 'number', value: '20' }],
      },
      {
        name: 'expiresIn',
        label: 'Invalid expires_in',
        description:
          'Replaces the field expires_in with any JSON value. Leave it empty to omit the field.',
        fields: [{ name: 'value', label: 'JSON', kind: 'json', value: '"soon"' }],
      },
      {
        name: 'sameToken',
        label: 'Same token',
        description: 'Returns the previous token again until it expires.',
        fields: [],
      },
    ],
  },
  {
    target: 'api',
    title: 'Calls with a token',
    description: 'All other calls of the merchant.',
    faults: [
      ...RESPONSE_FAULTS,
      {
        name: 'notFound',
        label: 'Transaction not found',
        description: 'Responds with 404 to lookups of transactions, as if they did not exist yet.',
        fields: [
          { name: 'forMs', label: 'only for … milliseconds after the creation', kind: 'number' },
        ],
      },
      {
        name: 'otherStatus',
        label: 'Contradictory status',
        description: 'Lookups of a completed transaction return another status.',
        fields: [{ name: 'status', label: 'status', kind: 'text', value: 'failed' }],
      },
    ],
  },
];

/** How often a fault applies. Both empty: always. @type {Field[]} */
export const TRIGGER = [
  { name: 'next', label: 'only the next … times', kind: 'number' },
  { name: 'probability', label: 'probability, 0 to 1', kind: 'number' },
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
 * Converts typed text to a value of the fault plan, or to undefined if it is empty. The emulator validates the value.
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
