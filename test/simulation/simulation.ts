import { SeededRandom } from '../chaos/seeded-random.ts';
import { DeliveryModel } from './delivery-model.ts';
import type { SimulatedDatabase } from './simulated-database.ts';
import { EventSender, REPLAY } from './event-sender.ts';
import { ExpectationChecks } from './expectation-checks.ts';
import { ExpectationModel } from './expectation-model.ts';
import { FinalChecks, stuck } from './final-checks.ts';
import { ProcessFleet } from './process-fleet.ts';
import type { Slot } from './process-fleet.ts';
import { AttemptJournal } from './attempt-journal.ts';
import { SECOND_VERSION, FIRST_VERSION } from './scenario.ts';
import type { Scenario, Step } from './scenario.ts';
import { SimulatedService } from './simulated-service.ts';
import { CONCURRENCY } from './simulated-application.ts';
import type { ApplicationTimes, SimulatedApplication } from './simulated-application.ts';
import { shown, StoreObservation } from './store-observation.ts';
import type { Timeline } from './virtual-timeline.ts';

/** The timeline, the store and the times of a simulation. */
export interface SimulationSetup {
  readonly timeline: Timeline;
  readonly database: SimulatedDatabase;
  readonly times: ApplicationTimes;
  /** Whether store operations take effect one at a time, so that the simulation can check each of them. */
  readonly exact: boolean;
  /** Moves the wall clock of the store. */
  setWallClock(byMs: number): void;
  /** After the last fault, all deliveries must become final within this time, in milliseconds. */
  readonly settleMs: number;
  /** Called with a line for each step, each operation that took effect and each attempt. */
  trace?(line: string): void;
}

/**
 * The maximum time on a busy machine from the start of an attempt's time limit to the start of its handler, in
 * milliseconds.
 */
const DISPATCH_MS = 200;

/** The interval at which the simulation reads whether all deliveries are final, in milliseconds. */
const READ_MS = 100;

/** Runs a scenario and reports each violation of the promises. */
export class Simulation {
  readonly #journal: AttemptJournal;
  readonly #model: DeliveryModel;
  readonly #observation: StoreObservation;
  readonly #fleet: ProcessFleet;
  readonly #sender: EventSender;
  readonly #checks: FinalChecks;
  readonly #polls: ExpectationModel;
  readonly #expectations: ExpectationChecks;
  readonly #violations: string[] = [];
  readonly #scenario: Scenario;
  readonly #setup: SimulationSetup;

  constructor(scenario: Scenario, setup: SimulationSetup) {
    this.#scenario = scenario;
    this.#setup = setup;
    const { times, timeline, database } = setup;
    const now = (): number => timeline.now;
    this.#journal = new AttemptJournal(
      (line) => this.#trace(() => line),
      {
        leaseMs: times.leaseMs,
        timeoutMs: times.timeoutMs - (setup.exact ? 0 : DISPATCH_MS),
        concurrency: CONCURRENCY,
      },
      now,
    );
    this.#model = new DeliveryModel(database.store, this.#journal, times.retry.attempts, now);
    const service = new SimulatedService(scenario.events);
    this.#polls = new ExpectationModel(now, scenario.events);
    const models = [this.#journal, this.#model, this.#polls] as const;
    this.#observation = new StoreObservation(...models, setup, (line) => this.#trace(line));
    this.#expectations = new ExpectationChecks(database, service, timeline, this.#polls);
    const random = new SeededRandom(scenario.seed);
    this.#fleet = new ProcessFleet(setup, random, this.#journal, this.#observation, service);
    this.#sender = new EventSender(scenario.events, this.#fleet, timeline, times.resendMs);
    this.#checks = new FinalChecks(database, (...delivery) => this.#forced(...delivery));
  }

  /** Ends all processes, and waits until their stores are closed. */
  end(): Promise<void> {
    return this.#fleet.end();
  }

  /** Returns the violations in the order in which they were found. */
  async run(): Promise<string[]> {
    const { timeline } = this.#setup;
    for (const slot of this.#fleet.slots) this.#fleet.start(slot);
    for (const step of this.#scenario.steps) {
      this.#trace(() => `step ${shown(step)}`);
      this.#play(step);
      await timeline.run(0);
      if (this.#setup.exact) {
        this.#journal.checkHeartbeats();
        await this.#checks.checkStats();
      }
      if (this.violations.length > 0) return this.violations;
      if (step.step === 'pass time') await timeline.run(step.ms);
    }
    await this.#settle();
    return this.violations;
  }

  get violations(): string[] {
    const models = [this.#journal, this.#model, this.#polls, this.#observation, this.#fleet];
    const parts = [...models, this.#checks, this.#expectations];
    return [...parts.flatMap(({ violations }) => violations), ...this.#violations];
  }

  #trace(line: () => string): void {
    const { timeline } = this.#setup;
    this.#setup.trace?.(`${timeline.now.toFixed(0).padStart(9)} ms  ${line()}`);
  }

  #play(step: Step): void {
    const slotOf = (index: number): Slot => this.#fleet.slots[index]!;
    switch (step.step) {
      case 'send':
        this.#sender.send(step.event, '', step.to);
        break;
      case 'send under another id':
        this.#sender.send(step.event, '-again', step.to);
        break;
      case 'send a replay':
        this.#sender.send(step.event, REPLAY, step.to);
        break;
      case 'redrive the replay': {
        const { id } = this.#sender.planned(step.event, REPLAY);
        this.#operate(step.in, (inbox) => inbox.redrive({ ids: [id], state: 'stale' }));
        break;
      }
      case 'pass time':
        break;
      case 'fault':
        slotOf(step.in).process?.addFault(step.fault);
        break;
      case 'outage':
        for (const { index, process } of this.#fleet.slots) {
          if (step.in === 'all' || step.in === index) process?.cutOffFor(step.ms);
        }
        break;
      case 'crash':
        slotOf(step.in).process?.crash();
        break;
      case 'freeze':
        slotOf(step.in).process?.pauseFor(step.ms);
        break;
      case 'drain and restart':
        this.#fleet.drain(slotOf(step.in), step.deploy ? SECOND_VERSION : FIRST_VERSION);
        break;
      case 'pause':
      case 'resume': {
        const { step: action, handler } = step;
        this.#operate(step.in, (inbox) => inbox[action](handler));
        break;
      }
      case 'redrive': {
        const ids = step.event === 'dead' ? null : [this.#sender.planned(step.event, '').id];
        const query = step.force
          ? { force: true, state: 'done' as const }
          : { state: 'dead' as const };
        this.#operate(step.in, (inbox) => inbox.redrive({ ...query, ...(ids && { ids }) }));
        break;
      }
      case 'skip':
        this.#operate(step.in, (inbox) =>
          inbox.skip({ ids: [this.#sender.planned(step.event, '').id], state: 'pending' }),
        );
        break;
      case 'forget':
        this.#operate(step.in, (inbox) => inbox.forgetHandler(step.handler));
        break;
      case 'set the wall clock':
        this.#setup.setWallClock(step.byMs);
        break;
      case 'expect':
      case 'attach':
      case 'cancel':
      case 'ask now':
      case 'request':
      case 'service hangs':
      case 'service answers':
        this.#expectations.play(step, 'in' in step ? slotOf(step.in).application : null);
    }
  }

  /** Runs an operator's action in a running process. The action may fail; only its changes are checked. */
  #operate(index: number, act: (inbox: SimulatedApplication['inbox']) => Promise<unknown>): void {
    const { application } = this.#fleet.slots[index]!;
    if (application?.started) act(application.inbox).catch(() => {});
  }

  /** Removes all faults and deploys the last version to all processes. Then all deliveries must become final. */
  async #settle(): Promise<void> {
    const { timeline, database, settleMs } = this.#setup;
    for (const { process } of this.#fleet.slots) process?.heal();
    const up = (): boolean =>
      this.#fleet.slots.every(({ application }) => application?.started ?? false);
    await timeline.until(up, settleMs);
    const { handlers } = await database.store.catalog();
    const deployed = handlers.some(({ name }) => name === 'audit');
    for (const slot of this.#fleet.slots) {
      if (!slot.handlers.includes('audit') && deployed) this.#fleet.drain(slot, SECOND_VERSION);
      if (deployed) slot.handlers = SECOND_VERSION;
    }
    let readAt = -Infinity;
    const final = async (): Promise<boolean> => {
      for (const { process } of this.#fleet.slots) process?.heal();
      if (this.#setup.exact) this.#journal.checkHeartbeats();
      if (this.violations.length > 0) return true;
      // The timeline calls this function for each timer. Without this limit, reads would take most of the time.
      if (timeline.now - readAt < READ_MS) return false;
      readAt = timeline.now;
      // The expectations are read before the deliveries, because the end of an expectation may store an event.
      const received = this.#sender.allAcknowledged && (await this.#expectations.haveEnded());
      const { deliveries, paused } = await database.store.stats();
      // The pause of an operator may take effect only now, so resume all paused handlers.
      for (const { handler } of paused) await database.store.pause(handler, false);
      return received && deliveries.every(({ state }) => state === 'dead');
    };
    let settled = await timeline.until(final, settleMs);
    await this.#expectations.askAgain(settleMs);
    settled &&= await timeline.until(final, settleMs);
    if (this.violations.length > 0) return;
    const events = await this.#checks.stored();
    if (!this.#sender.allAcknowledged)
      this.#violations.push('events are not acknowledged, although all faults are over');
    else if (!settled)
      this.#violations.push(
        `deliveries are not final, although all faults are over: ${stuck(events)}`,
      );
    await this.#checks.checkStats();
    await this.#expectations.checkEvents();
    await this.#expectations.checkRequests();
    if (this.#setup.exact) await this.#model.checkStored();
    if (this.#setup.exact) this.#polls.checkStored(await this.#expectations.stored());
    await this.#checks.checkEffects(events);
  }

  #forced(company: string, id: string, handler: string): number {
    if (this.#setup.exact) return this.#model.get(company, id, handler)?.forced ?? 0;
    return this.#scenario.steps.filter((step) => step.step === 'redrive' && step.force).length;
  }
}
