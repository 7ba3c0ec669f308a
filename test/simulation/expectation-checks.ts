import type { StoredExpectation } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { SimulatedDatabase } from './simulated-database.ts';
import type { ExpectationModel } from './expectation-model.ts';
import type { ExpectationStep } from './scenario.ts';
import type { SimulatedApplication } from './simulated-application.ts';
import { referenceOf } from './simulated-service.ts';
import type { SimulatedService } from './simulated-service.ts';
import type { Timeline } from './virtual-timeline.ts';

/** Plays the steps of expected payments, and checks the expectations at the end. */
export class ExpectationChecks {
  readonly violations: string[] = [];
  /** The company and reference of each requested payment. */
  readonly #requested = new Set<string>();
  /** The company and reference of each cancelled payment. */
  readonly #cancelled = new Set<string>();
  readonly #database: SimulatedDatabase;
  readonly #service: SimulatedService;
  readonly #timeline: Timeline;
  readonly #model: ExpectationModel;

  constructor(
    database: SimulatedDatabase,
    service: SimulatedService,
    timeline: Timeline,
    model: ExpectationModel,
  ) {
    this.#database = database;
    this.#service = service;
    this.#timeline = timeline;
    this.#model = model;
  }

  /** Checks that a payment that was created on request is expected, and was created once. */
  async checkRequests(): Promise<void> {
    const stored = await this.stored();
    for (const key of this.#requested) {
      const [company, reference] = key.split('/') as [string, string];
      const created = this.#service.created(company, reference);
      if (created === 0 || this.#cancelled.has(key)) continue;
      const one = stored.find((row) => row.company === company && row.reference === reference);
      if (one === undefined || one.state === 'cancelled')
        this.violations.push(
          `EX-15 the payment ${key} exists, and its expectation is ${one?.state}`,
        );
      if (created > 1)
        this.violations.push(`EX-15 the payment ${key} was requested ${created} times`);
    }
  }

  async stored(): Promise<readonly StoredExpectation[]> {
    const { expectations } = this.#database.store;
    return (await expectations.list({ filter: {}, limit: 1000, after: null })).expectations;
  }

  /** Plays a step in a running application. The call of the step may fail; only its effects are checked. */
  play(step: ExpectationStep, application: SimulatedApplication | null): void {
    const { index, ...plan } = this.#service.planned(step.event);
    if (step.step === 'service answers') return this.#service.answer(plan, step.answer);
    if (step.step === 'service hangs') return this.#service.answer(plan, 'hangs');
    if (!application?.started) return;
    const { company, transactionId } = plan;
    const reference = referenceOf(index);
    const { expectations } = application;
    const ignore = (call: Promise<unknown>): void => void call.catch(() => {});
    if (step.step === 'expect') {
      const due = step.dueInMs === null ? {} : { dueBy: application.in(step.dueInMs) };
      const known = step.known && transactionId !== null ? { transactionId } : {};
      ignore(expectations.expect({ company, reference, ...due, ...known }));
    } else if (step.step === 'attach') {
      if (transactionId !== null)
        ignore(expectations.attach(reference, { company, transactionId }));
    } else if (step.step === 'cancel') {
      this.#cancelled.add(`${company}/${reference}`);
      ignore(expectations.cancel(reference, { company }));
    } else if (step.step === 'request') {
      // Only a payment with a transaction id can be found after the response was lost.
      if (transactionId === null) return;
      this.#requested.add(`${company}/${reference}`);
      const body = { reference, end: step.end };
      ignore(
        expectations.request(
          { company, reference },
          (api) => api.post<{ transactionId: string }>('/payments', { body }),
          { attach: (response) => response.transactionId },
        ),
      );
    } else ignore(expectations.askNow({ company, reference }));
  }

  /** Whether every expectation has ended. An overdue expectation counts as ended, because it may be polled for days. */
  async haveEnded(): Promise<boolean> {
    return (await this.stored()).every(
      ({ state, nextPollAt }) =>
        state === 'overdue' || (state !== 'waiting' && nextPollAt === null),
    );
  }

  /**
   * Polls every open expectation twice, because the first poll may have started before the service answered. After
   * that, all payments that the service reports must be fulfilled.
   */
  async askAgain(limitMs: number): Promise<void> {
    for (let round = 1; round <= 2; round += 1) {
      const open = (await this.stored()).filter(({ state }) => state === 'overdue');
      const polls = new Map(open.map((one) => [`${one.company}/${one.reference}`, one.polls]));
      await this.#database.store.expectations.pollNow(open, []);
      this.#model.polledNow(open);
      // A step that is still under way may pause the polls or add an expectation.
      const asked = async (): Promise<boolean> => {
        const { paused } = await this.#database.store.stats();
        for (const { handler } of paused) await this.#database.store.pause(handler, false);
        return (await this.stored()).every(
          ({ company, reference, ...one }) =>
            one.state !== 'overdue' || one.polls > (polls.get(`${company}/${reference}`) ?? -1),
        );
      };
      if (!(await this.#timeline.until(asked, limitMs)))
        this.violations.push('EX-03 expectations were not polled, although all faults are over');
    }
    const all = await this.stored();
    for (const { company, reference, state, contradiction } of all) {
      if (state !== 'overdue' || contradiction !== null) continue;
      const { transactionId } = this.#service.planned(Number(reference.slice(1)));
      // Such an id is not attached, because the payment may belong to the other expectation.
      const isTaken = all.some(
        (other) =>
          other.company === company &&
          other.reference !== reference &&
          other.transactionId === transactionId,
      );
      if (!isTaken && this.#service.reports(company, reference)) {
        this.violations.push(
          `EX-08 ${company}/${reference} is overdue, and the service reports it`,
        );
      }
    }
  }

  /** Checks that the events which fulfilled expectations are stored, with the same source. */
  async checkEvents(): Promise<void> {
    for (const { company, reference, state, fulfilled } of await this.stored()) {
      if ((state === 'fulfilled') !== (fulfilled !== null))
        this.violations.push(`EX-05 ${company}/${reference} is ${state}, and has another event`);
      if (fulfilled === null) continue;
      const event = await this.#database.store.find(company, fulfilled.eventId);
      if (event?.source !== fulfilled.by || event.eventType !== fulfilled.eventType)
        this.violations.push(`EX-04 ${fulfilled.eventId} is not stored as ${fulfilled.by}`);
    }
  }
}
