import { Logger } from '@nestjs/common';
import { beforeAll, describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { scenarios, VIRTUAL } from './scenario.ts';
import type { EventPlan, Scenario, Step } from './scenario.ts';
import { playInMemory } from './play-in-memory.ts';

beforeAll(() => Logger.overrideLogger(false));

const event = (over: Partial<EventPlan> = {}): EventPlan => ({
  company: 'a',
  eventType: 'transaction.completed',
  transactionId: 't1',
  sharesReference: false,
  scripts: { book: ['commit'], mail: ['succeed'], log: ['succeed'], audit: ['succeed'] },
  ...over,
});
const play = (events: readonly EventPlan[], steps: readonly Step[]): Promise<string[]> =>
  playInMemory({ seed: 1, events, steps });

describe('the inbox, with simulated faults', () => {
  it('in random scenarios, all deliveries of every acknowledged event reach a final state, and no effect exists twice', async () => {
    const property = fc.asyncProperty(scenarios(VIRTUAL), async (scenario: Scenario) => {
      const wrong = await playInMemory(scenario);
      if (wrong.length > 0) throw new Error(wrong[0]);
    });
    // The tests always play the same scenarios. `npm run simulate` plays others.
    const result = await fc.check(property, { seed: 1, numRuns: 15 });
    const replay = `npm run simulate -- --seed ${result.seed} --path ${result.counterexamplePath}`;
    expect(result.failed ? `${String(result.errorInstance)}\nreplay: ${replay}` : 'passed').toBe(
      'passed',
    );
  });

  it('two runs of a scenario with the same seed have the same trace', async () => {
    const [scenario] = fc.sample(scenarios(VIRTUAL), { numRuns: 1, seed: 7 });
    const traces = [0, 1].map(() => [] as string[]);
    for (const trace of traces)
      await playInMemory(scenario!, (line) => trace.push(withoutIds(line)));
    expect(traces[0]!.length).toBeGreaterThan(20);
    expect(traces[1]).toEqual(traces[0]);
  });

  it('IN-11 deliveries are claimed again if the response to their claim is lost', async () => {
    const lost: Step = {
      step: 'fault',
      in: 0,
      fault: { operation: 'claim', kind: 'reject after' },
    };
    const steps: Step[] = [
      { step: 'pause', handler: '*', in: 0 },
      { step: 'pass time', ms: 500 },
      { step: 'send', event: 0, to: 1 },
      { step: 'pass time', ms: 500 },
      { step: 'outage', in: 1, ms: 1_000 },
      { step: 'outage', in: 2, ms: 1_000 },
      lost,
      { step: 'resume', handler: '*', in: 0 },
      { step: 'pass time', ms: 500 },
    ];
    expect(await play([event()], steps)).toEqual([]);
  });

  it('IN-19 after an event crashed its process, the lost attempts of other deliveries are not counted', async () => {
    const poison = event({
      transactionId: null,
      scripts: {
        ...event().scripts,
        book: ['crash the process'],
        mail: ['work'],
        log: ['crash the process'],
      },
    });
    const innocent = event({
      transactionId: 't2',
      scripts: { ...event().scripts, book: ['work'] },
    });
    const steps: Step[] = [0, 1, 0, 1].flatMap((number, to): Step[] => [
      { step: 'send', event: number, to: to % 3 },
      { step: 'pass time', ms: 20 },
    ]);
    expect(await play([poison, innocent], steps)).toEqual([]);
  });

  it('IN-32 a rolling deploy to a version with one more handler, and back, loses no delivery', async () => {
    const steps: Step[] = [0, 1, 2].flatMap((slot): Step[] => [
      { step: 'drain and restart', in: slot, deploy: true },
      { step: 'send', event: slot, to: slot + 1 },
      { step: 'pass time', ms: 3_000 },
    ]);
    const back = steps.map((step) =>
      step.step === 'drain and restart' ? { ...step, deploy: false } : step,
    );
    const events = ['t1', 't2', null].map((transactionId) => event({ transactionId }));
    expect(await play(events, [...steps, ...back])).toEqual([]);
  });

  /** The service reports the first payment, which the application expects. Its poll is due after a second. */
  const expected: Step[] = [
    { step: 'service answers', event: 0, answer: 'completed' },
    { step: 'pass time', ms: 500 },
    { step: 'expect', event: 0, in: 0, known: true, dueInMs: null },
  ];
  const send: Step = { step: 'send', event: 0, to: 1 };
  const polled: Step = { step: 'pass time', ms: 3_000 };

  it.each<[order: string, steps: Step[]]>([
    ['before the poll', [send, ...expected, polled]],
    ['after the poll', [...expected, polled, send]],
    ['at the time of the poll', [...expected, { step: 'pass time', ms: 1_000 }, send, polled]],
    ['twice', [...expected, send, polled, { ...send, step: 'send under another id' }]],
  ])('EX-04 a webhook sent %s runs the handlers of the payment once', async (_order, steps) => {
    expect(await play([event()], steps)).toEqual([]);
  });

  it.each(['crash before', 'crash after', 'reject before', 'reject after'] as const)(
    'EX-08 the fault "%s" in each operation of a poll loses no payment',
    async (kind) => {
      for (const operation of [
        'receive',
        'expectations.claimPolls',
        'expectations.settlePoll',
      ] as const) {
        const faults = [0, 1, 2].map((slot): Step => ({
          step: 'fault',
          in: slot,
          fault: { operation, kind },
        }));
        expect(await play([event()], [...expected, ...faults, polled, send])).toEqual([]);
      }
    },
  );

  it.each(['expect', 'startRequest', 'attach', 'endRequest'] as const)(
    'EX-08 EX-15 a payment is requested and booked once if the process is killed before or after the operation "%s" of its request and the customer clicks again',
    async (name) => {
      for (const kind of ['crash before', 'crash after'] as const) {
        const operation = `expectations.${name}` as const;
        const wrong = await play(
          [event()],
          [
            { step: 'service answers', event: 0, answer: 'completed' },
            { step: 'pass time', ms: 500 },
            { step: 'fault', in: 0, fault: { operation, kind } },
            ...[0, 1, 2].flatMap((slot): Step[] => [
              { step: 'request', event: 0, in: slot, end: 'accepted' },
              { step: 'pass time', ms: slot === 0 ? 500 : 40_000 },
            ]),
          ],
        );
        expect([kind, wrong]).toEqual([kind, []]);
      }
    },
  );

  it('EX-05 a poll fulfils a second expectation of a transaction that an earlier poll found', async () => {
    const again: Step = { step: 'expect', event: 1, in: 1, known: true, dueInMs: null };
    expect(await play([event(), event()], [...expected, polled, again, polled])).toEqual([]);
  });

  it('EX-06 a poll that contradicts a webhook changes nothing', async () => {
    const declined: Step = { step: 'service answers', event: 0, answer: 'declined' };
    const ask: Step = { step: 'ask now', event: 0, in: 2 };
    expect(await play([event()], [...expected, send, polled, declined, ask, polled])).toEqual([]);
  });

  it('EX-07 a payment that the last poll finds is not reported as overdue', async () => {
    const steps: Step[] = [
      { step: 'pass time', ms: 500 },
      { step: 'expect', event: 0, in: 0, known: true, dueInMs: 2_000 },
      { step: 'pass time', ms: 1_500 },
      { step: 'service answers', event: 0, answer: 'completed' },
      polled,
    ];
    expect(await play([event()], steps)).toEqual([]);
  });

  it('EX-07 a webhook fulfils an expectation that is overdue', async () => {
    const overdue: Step[] = [
      { step: 'pass time', ms: 500 },
      { step: 'expect', event: 0, in: 0, known: false, dueInMs: 2_000 },
      { step: 'pass time', ms: 12_000 },
    ];
    expect(await play([event()], [...overdue, send, polled])).toEqual([]);
  });
});

/** Replaces the ids of workers, which are random in each run. */
function withoutIds(line: string): string {
  return line.replaceAll(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, 'id');
}
