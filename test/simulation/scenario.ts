import * as fc from 'fast-check';
import { BEHAVIOURS } from './handler-behaviour.ts';
import type { Behaviour } from './handler-behaviour.ts';
import { FAULTY_OPERATIONS } from './simulated-process.ts';
import type { Fault } from './simulated-process.ts';

/** The number of processes that share the store. */
export const SLOTS = 3;
/**
 * Handlers of the simulated application, with their event types. The second version of the application has all
 * handlers.
 */
export const HANDLERS = {
  book: ['transaction.*'],
  mail: ['transaction.completed'],
  log: ['*', '@payments/overdue'],
  audit: ['transaction.completed', 'refund.*'],
} as const;
export type HandlerName = keyof typeof HANDLERS;
export const FIRST_VERSION: readonly HandlerName[] = ['book', 'mail', 'log'];
export const SECOND_VERSION: readonly HandlerName[] = ['book', 'mail', 'log', 'audit'];

/** An event that the service sends, and what each handler does with it, attempt by attempt. */
export interface EventPlan {
  readonly company: string;
  readonly eventType: string;
  readonly transactionId: string | null;
  /**
   * Whether its webhook request has the reference of the first event, because the customer paid twice for one order.
   */
  readonly sharesReference: boolean;
  readonly scripts: Readonly<Record<HandlerName, readonly Behaviour[]>>;
}

/** What the service responds to a poll of a transaction. */
export const ANSWERS = [
  'completed',
  'declined',
  'pending',
  'missing',
  'nonsense',
  'another transaction',
] as const;
export type Answer = (typeof ANSWERS)[number];

/**
 * How a request for a payment ends: with its transaction; before it was sent; with status 400, which created no payment;
 * or without a response, after the service had created the payment or not.
 */
export const REQUEST_ENDS = [
  'accepted',
  'not sent',
  'rejected',
  'lost after it was accepted',
  'lost',
] as const;
export type RequestEnd = (typeof REQUEST_ENDS)[number];

/** A step of the expected payment of an event. */
export type ExpectationStep =
  | {
      readonly step: 'expect';
      readonly event: number;
      readonly in: number;
      /** Whether the transaction id of the payment is known. Otherwise, polls find the payment by its reference. */
      readonly known: boolean;
      readonly dueInMs: number | null;
    }
  | { readonly step: 'attach' | 'cancel' | 'ask now'; readonly event: number; readonly in: number }
  | {
      readonly step: 'request';
      readonly event: number;
      readonly in: number;
      readonly end: RequestEnd;
    }
  | { readonly step: 'service hangs'; readonly event: number }
  | { readonly step: 'service answers'; readonly event: number; readonly answer: Answer };

/** One step of a scenario. `event`, `to` and `in` are indexes, modulo the number of events or processes. */
export type Step =
  | ExpectationStep
  | { readonly step: 'send'; readonly event: number; readonly to: number }
  | {
      /** `send a replay`: with a timestamp so old that the event is stale. */
      readonly step: 'send under another id' | 'send a replay';
      readonly event: number;
      readonly to: number;
    }
  | { readonly step: 'redrive the replay'; readonly event: number; readonly in: number }
  | { readonly step: 'pass time'; readonly ms: number }
  | { readonly step: 'fault'; readonly in: number; readonly fault: Fault }
  | { readonly step: 'outage'; readonly in: number | 'all'; readonly ms: number }
  | { readonly step: 'crash'; readonly in: number }
  | { readonly step: 'freeze'; readonly in: number; readonly ms: number }
  | { readonly step: 'drain and restart'; readonly in: number; readonly deploy: boolean }
  | { readonly step: 'pause'; readonly handler: HandlerName | '*'; readonly in: number }
  | { readonly step: 'resume'; readonly handler: HandlerName | '*'; readonly in: number }
  | {
      readonly step: 'redrive';
      readonly event: number | 'dead';
      readonly force: boolean;
      readonly in: number;
    }
  | { readonly step: 'skip'; readonly event: number; readonly in: number }
  | { readonly step: 'forget'; readonly handler: HandlerName; readonly in: number }
  | { readonly step: 'set the wall clock'; readonly byMs: number };

/** A scenario: its events, its steps, and the seed of all random numbers that it needs. */
export interface Scenario {
  readonly seed: number;
  readonly events: readonly EventPlan[];
  readonly steps: readonly Step[];
}

/** The steps and behaviours that a scenario may have. Some need virtual time, which real databases do not support. */
export interface ScenarioBounds {
  readonly maxSteps: number;
  readonly behaviours: readonly Behaviour[];
  readonly steps: ReadonlySet<Step['step']>;
  /** Factor for the times of steps, and their maximum in milliseconds. */
  readonly timeScale: number;
  readonly maxMs: number;
}

export const EVERY_STEP: ReadonlySet<Step['step']> = new Set<Step['step']>([
  'send',
  'send under another id',
  'send a replay',
  'redrive the replay',
  'pass time',
  'fault',
  'outage',
  'crash',
  'freeze',
  'drain and restart',
  'pause',
  'resume',
  'redrive',
  'skip',
  'forget',
  'set the wall clock',
  'expect',
  'attach',
  'cancel',
  'ask now',
  'request',
  'service answers',
  'service hangs',
]);

export const VIRTUAL: ScenarioBounds = {
  timeScale: 1,
  maxMs: Infinity,
  maxSteps: 40,
  behaviours: BEHAVIOURS,
  steps: EVERY_STEP,
};

const HANDLER_NAMES = Object.keys(HANDLERS) as HandlerName[];
const slot = fc.nat({ max: SLOTS - 1 });
const event = fc.nat({ max: 9 });
const handler = fc.constantFrom(...HANDLER_NAMES);
const handlerOrAll = fc.constantFrom<HandlerName | '*'>(...HANDLER_NAMES, '*');
const kind = fc.constantFrom<Fault['kind']>(
  'reject before',
  'reject after',
  'slow before',
  'slow after',
  'crash before',
  'crash after',
);
const passMs = fc.constantFrom(0, 1, 20, 20, 500, 500, 3_000, 3_000, 12_000, 60_000, 100_000);

const STEPS: readonly { readonly weight: number; readonly arbitrary: fc.Arbitrary<Step> }[] = [
  { weight: 8, arbitrary: fc.record({ step: fc.constant('send'), event, to: slot }) },
  {
    weight: 1,
    arbitrary: fc.record({ step: fc.constant('send under another id'), event, to: slot }),
  },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('send a replay'), event, to: slot }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('redrive the replay'), event, in: slot }) },
  { weight: 8, arbitrary: fc.record({ step: fc.constant('pass time'), ms: passMs }) },
  {
    weight: 5,
    arbitrary: fc.record({
      step: fc.constant('fault'),
      in: slot,
      fault: fc.record({ operation: fc.constantFrom(...FAULTY_OPERATIONS), kind }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      step: fc.constant('outage'),
      in: fc.oneof(slot, fc.constant('all' as const)),
      ms: fc.constantFrom(500, 5_000, 30_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ step: fc.constant('crash'), in: slot }) },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant('freeze'),
      in: slot,
      ms: fc.constantFrom(100, 4_000, 15_000, 40_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant('drain and restart'),
      in: slot,
      deploy: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ step: fc.constant('pause'), handler: handlerOrAll, in: slot }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ step: fc.constant('resume'), handler: handlerOrAll, in: slot }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant('redrive'),
      event: fc.oneof(event, fc.constant('dead' as const)),
      force: fc.boolean(),
      in: slot,
    }),
  },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('skip'), event, in: slot }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('forget'), handler, in: slot }) },
  {
    weight: 1,
    arbitrary: fc.record({
      step: fc.constant('set the wall clock'),
      byMs: fc.constantFrom(-3_600_000, 3_600_000),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      step: fc.constant('expect'),
      event,
      in: slot,
      known: fc.boolean(),
      dueInMs: fc.constantFrom(null, null, 2_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      step: fc.constant('request'),
      event,
      in: slot,
      end: fc.constantFrom(...REQUEST_ENDS),
    }),
  },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('service hangs'), event }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('attach'), event, in: slot }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('cancel'), event, in: slot }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('ask now'), event, in: slot }) },
  {
    weight: 5,
    arbitrary: fc.record({
      step: fc.constant('service answers'),
      event,
      answer: fc.constantFrom(...ANSWERS, 'completed' as const),
    }),
  },
] as const;

/** Random scenarios. fast-check shrinks a failing scenario to smaller ones. */
export function scenarios(bounds: ScenarioBounds): fc.Arbitrary<Scenario> {
  const script = fc.array(fc.constantFrom(...bounds.behaviours), { minLength: 1, maxLength: 3 });
  const plan = fc.record({
    company: fc.constantFrom('a', 'b'),
    eventType: fc.constantFrom('transaction.completed', 'transaction.pending', 'refund.created'),
    transactionId: fc.constantFrom('t1', 't1', 't2', null),
    sharesReference: fc.constantFrom(false, false, true),
    scripts: fc.record({ book: script, mail: script, log: script, audit: script }),
  });
  const steps = STEPS.filter(({ arbitrary }) => bounds.steps.has(stepOf(arbitrary)));
  const scaled = (step: Step): Step =>
    'ms' in step ? { ...step, ms: Math.min(bounds.maxMs, step.ms * bounds.timeScale) } : step;
  const all = fc.record({
    seed: fc.nat(),
    events: fc.array(plan, { minLength: 1, maxLength: 10 }),
    steps: fc.array(fc.oneof(...steps), { minLength: 1, maxLength: bounds.maxSteps, size: 'max' }),
  });
  return all.map((scenario) => ({ ...scenario, steps: scenario.steps.map(scaled) }));
}

function stepOf(arbitrary: fc.Arbitrary<Step>): Step['step'] {
  return fc.sample(arbitrary, { numRuns: 1, seed: 1 })[0]!.step;
}
