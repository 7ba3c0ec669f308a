import type { JournalEntry } from './application-protocol.js';
import { check } from './checker.js';
import type { Observations } from './checker.js';

// The functions build observations of a chaos run for the specs of the checker.
export const planned = (id: string, transactionId: string, more: object = {}) => ({
  id,
  eventType: 'transaction.completed',
  transactionId,
  actions: null,
  handlers: ['audit', 'book'],
  poisoned: [],
  copies: [],
  ...more,
});
export const effect = (handler: string, event: string, transaction: string) => ({
  handler,
  event,
  transaction,
  attempt: `p/${handler}/${event}`,
});
export const done = (handler: string, more: object = {}) => ({
  handler,
  state: 'done',
  attempts: 1,
  history: [{ outcome: 'done', error: null }],
  ...more,
});
export const stored = (id: string, more: object = {}) => ({
  id,
  repeats: [],
  deliveries: [done('audit'), done('book')],
  ...more,
});
export const attempt = (name: string, event: string, from: number, to: number): JournalEntry[] => [
  {
    kind: 'attempt-started',
    at: from,
    attempt: name,
    handler: 'book',
    event,
    transaction: 'x',
    number: 1,
  },
  { kind: 'effect-written', at: to, attempt: name },
  { kind: 'attempt-ended', at: to + 5, attempt: name, error: null },
];
export const heartbeats = (from: number, to: number): JournalEntry[] =>
  Array.from({ length: (to - from) / 250 + 1 }, (_, index) => {
    const at = from + index * 250;
    return { kind: 'heartbeat-ended', at, end: at + 5, worker: 'w', alive: true } as const;
  });

/** Observations without a violation: one event, and a second event that was sent with two ids. */
export const GOOD: Observations = {
  events: [planned('a', 'x'), planned('b', 'y'), planned('b2', 'y')],
  payments: null,
  sent: new Map(
    ['a', 'b', 'b2'].map((id) => [id, { firstSentAt: 1000, acknowledgedAt: 1010 }] as const),
  ),
  effects: [
    effect('audit', 'a', 'x'),
    effect('book', 'a', 'x'),
    effect('audit', 'b', 'y'),
    effect('book', 'b', 'y'),
  ],
  stored: [stored('a'), stored('b', { repeats: ['b2'] })],
  processes: [{ name: 'p', journal: heartbeats(0, 5000), endedAt: null }],
  exits: [{ status: 'SIGKILL', cause: 'killed', log: '' }],
  faults: [],
  lateDrains: [],
  newHandlerKnown: null,
  leaseMs: 1000,
  left: { waiting: 0, deadLetters: 0 },
  until: 5000,
};

/** Returns the rules that {@link GOOD} breaks with these changes. */
export const rules = (changes: Partial<Observations>) =>
  check({ ...GOOD, ...changes }).map(({ rule }) => rule);
