/**
 * @typedef {import('./fault-fields.js').Field} Field
 * A fault with `onlyOn` is either on or off: its value in the plan is `true`, without fields.
 * @typedef {{ name: string, label: string, description: string, fields: Field[], onlyOn?: boolean }} Fault
 * @typedef {{ target: string, title: string, description: string, faults: Fault[] }} FaultTarget
 */

/** @type {Fault[]} */
const RESPONSE_FAULTS = [
  {
    name: 'slow',
    label: 'Slow',
    description: 'Delays the response, also together with another fault.',
    fields: [{ name: 'ms', label: 'milliseconds, or min-max', kind: 'delay', value: '2000' }],
  },
  {
    name: 'reset',
    label: 'Reset',
    description:
      'Resets the connection without a response, before or after the request takes effect.',
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
  {
    name: 'unauthorized',
    label: '401 Unauthorized',
    description: 'Responds with 401, as if the credentials or the token were not valid.',
    fields: [],
  },
  {
    name: 'error',
    label: '5xx server error',
    description: 'Responds with a server error, as during an outage.',
    fields: [{ name: 'status', label: 'status', kind: 'number', value: '503' }],
  },
  {
    name: 'rateLimit',
    label: '429 Too Many Requests',
    description:
      'Responds with 429 and a Retry-After header, as if the merchant sent too many requests.',
    fields: [{ name: 'retryAfter', label: 'Retry-After', kind: 'text', value: '1' }],
  },
  {
    name: 'truncate',
    label: 'Truncated',
    description: 'Sends half of the response, then closes the connection.',
    fields: [],
  },
  {
    name: 'oversize',
    label: 'Oversized',
    description: 'Pads the response to a size that the merchant should reject.',
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
    description: 'Webhook requests from the emulator to the merchant.',
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
        description:
          'Sends further copies of the same event at the same time; the merchant should process it once.',
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
        description: 'Waits before it sends each delivery.',
        fields: [{ name: 'ms', label: 'milliseconds, or min-max', kind: 'delay', value: '2000' }],
      },
      {
        name: 'drop',
        label: 'Drop',
        description: 'Does not send the event, and logs the attempt as dropped.',
        fields: [],
      },
      {
        name: 'tamperBody',
        label: 'Tamper with the body',
        description: 'Changes the body after signing, so that the signature does not match.',
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
        description:
          'Makes the signature invalid, or omits it; the merchant should reject the request.',
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
          "Makes further attempts of a failed delivery after these waits, instead of the emulator's schedule.",
        fields: [
          { name: '', label: 'waits in milliseconds', kind: 'list', value: '1000, 5000, 30000' },
        ],
      },
    ],
  },
  {
    target: 'token',
    title: 'Token endpoint',
    description: 'Responses to POST /v1/auth/token.',
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
          'Replaces the field expires_in with any JSON value, or omits the field if the setting is empty.',
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
    description: 'Responses to all other calls of the merchant.',
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
