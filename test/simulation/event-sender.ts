import type { ProcessFleet } from './process-fleet.ts';
import { SLOTS } from './scenario.ts';
import type { EventPlan } from './scenario.ts';
import { webhookReference } from './simulated-service.ts';
import type { Timeline } from './virtual-timeline.ts';

/** The suffix of the ids of events with an old timestamp. */
export const REPLAY = '-replay';

interface SentEvent {
  readonly company: string;
  readonly id: string;
  readonly body: Buffer;
  acknowledged: boolean;
}

/** Sends the events of a scenario as the service does: it repeats each event until a process acknowledges the event. */
export class EventSender {
  readonly #sent = new Map<string, SentEvent>();
  readonly #events: readonly EventPlan[];
  readonly #fleet: ProcessFleet;
  readonly #timeline: Timeline;
  readonly #resendMs: number;

  constructor(
    events: readonly EventPlan[],
    fleet: ProcessFleet,
    timeline: Timeline,
    resendMs: number,
  ) {
    this.#events = events;
    this.#fleet = fleet;
    this.#timeline = timeline;
    this.#resendMs = resendMs;
  }

  /** Whether all events that were sent are acknowledged. */
  get allAcknowledged(): boolean {
    return [...this.#sent.values()].every(({ acknowledged }) => acknowledged);
  }

  planned(index: number, suffix: string): { company: string; id: string; body: Buffer } {
    const events = this.#events;
    const number = index % events.length;
    const plan = events[number]!;
    const { company, eventType, transactionId, scripts } = plan;
    const id = `e${number}${suffix}`;
    const year = suffix === REPLAY ? 2020 : 2026;
    const timestamp = new Date(Date.UTC(year, 0, 1) + number).toISOString();
    const externalReference = webhookReference(plan, number);
    const data = { ...(transactionId !== null && { transactionId }), externalReference, scripts };
    return { company, id, body: Buffer.from(JSON.stringify({ id, eventType, timestamp, data })) };
  }

  send(index: number, suffix: string, to: number): void {
    const { company, id, body } = this.planned(index, suffix);
    const key = `${company}/${id}`;
    const sent = this.#sent.get(key) ?? { company, id, body, acknowledged: false };
    this.#sent.set(key, sent);
    this.#deliver(sent, to);
  }

  /** Sends an event to one process after the other, until one acknowledges it. */
  #deliver(sent: SentEvent, to: number): void {
    const { application } = this.#fleet.slots[to % SLOTS]!;
    const resend = this.#timeline.schedule(this.#resendMs, () => {
      if (!sent.acknowledged) this.#deliver(sent, to + 1);
    });
    if (!application?.started) return;
    application.receive(sent.company, sent.body).then(
      () => {
        sent.acknowledged = true;
        resend();
      },
      () => {},
    );
  }
}
