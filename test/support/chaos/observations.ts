import type { JournalEntry } from '../../../apps/demo/src/chaos/application-protocol.js';
import { check } from '../../../apps/demo/src/chaos/checker.js';
import type { Observations } from '../../../apps/demo/src/chaos/checker.js';

// The parts of what a chaos run observes.
export const planned = (id: string, transactionId: string, more: object = {}) => ({
  id,
  eventType: 'transaction.completed',
  transactionId,
  actions: null,
  handlers: ['audit', 'book'],
  poisoned: [],
  copies: [],
  afterFaults: false,
  ...more,
});
export const effect = (handler: string, event: string, transaction: string) => ({
  handler,
  event,
  transaction,
  run: `p/${handler}/${event}`,
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
export const run = (name: string, event: string, from: number, to: number): JournalEntry[] => [
  { kind: 'start', at: from, run: name, handler: 'book', event, transaction: 'x', attempt: 1 },
  { kind: 'worked', at: to, run: name },
  { kind: 'end', at: to + 5, run: name, error: null },
];
export const beats = (from: number, to: number): JournalEntry[] =>
  Array.from({ length: (to - from) / 250 + 1 }, (_, index) => {
    const at = from + index * 250;
    return { kind: 'beat', at, end: at + 5, worker: 'w', alive: true } as const;
  });

/** A run in which no promise was broken: an event, and another under two ids. */
export const GOOD: Observations = {
  events: [planned('a', 'x'), planned('b', 'y'), planned('b2', 'y')],
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
  processes: [{ name: 'p', journal: beats(0, 5000), endedAt: null }],
  ends: [{ how: 'SIGKILL', why: 'killed', log: '' }],
  faults: [],
  lateDrains: [],
  newHandlerKnown: null,
  leaseMs: 1000,
  until: 5000,
};

/** The rules that the run breaks if it differs from {@link GOOD} in these observations. */
export const rules = (changes: Partial<Observations>) =>
  check({ ...GOOD, ...changes }).map(({ rule }) => rule);
