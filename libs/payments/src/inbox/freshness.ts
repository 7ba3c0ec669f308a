import { TEST_EVENT_TYPE } from '../events/payment-event.js';
import { optionsInvalid } from '../payments.validation.js';
import type { IncomingEvent } from './inbox-store.js';

/** The units of {@link inWords} with their milliseconds, largest first. */
const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const;

/**
 * The maximum age of an event in milliseconds, `Infinity` for no limit. `option` is `webhook.maxAgeMs`, and `knowMs` is
 * how long a durable inbox remembers the ids of events.
 *
 * @throws PaymentsError `options_invalid` if ids are forgotten before the limit is reached: a replay in between would
 *   run its handlers again.
 */
export function resolveMaxAge(
  option: number | false | undefined,
  knowMs: number,
  durable: boolean,
): number {
  if (option === false) return Infinity;
  if (!durable) return option ?? Infinity;
  const maxAgeMs = option ?? knowMs;
  if (maxAgeMs <= knowMs) return maxAgeMs;
  throw optionsInvalid(
    `"webhook.maxAgeMs" must be at most "worker.knowMs"; it is ${maxAgeMs}, and "worker.knowMs" is ${knowMs}. Ids are ` +
      'forgotten after "worker.knowMs", and a replay that is younger than "webhook.maxAgeMs" would run its handlers ' +
      'again. Raise "worker.knowMs", or set "webhook.maxAgeMs" to false for no limit.',
  );
}

/**
 * Whether an event is too old for its id to be remembered, if it was received before. `webhook.test` events never
 * are: no handler runs for them.
 */
export function isStale(
  { eventType, occurredAt }: Pick<IncomingEvent, 'eventType' | 'occurredAt'>,
  nowMs: number,
  maxAgeMs: number,
): boolean {
  return nowMs - occurredAt.getTime() > maxAgeMs && eventType !== TEST_EVENT_TYPE;
}

/** The log line about an event that was stored as stale. */
export function staleWarning(
  { company, id, eventType, occurredAt }: IncomingEvent,
  nowMs: number,
  maxAgeMs: number,
): string {
  const age = inWords(nowMs - occurredAt.getTime());
  return (
    `Event ${id} (company ${company}) of type "${eventType}" is from ${occurredAt.toISOString()}, ${age} ago, and ` +
    `"webhook.maxAgeMs" is ${inWords(maxAgeMs)}. It may be a replay of an event whose id is no longer remembered, so it ` +
    'is stored as stale and no handler runs. If it is a late delivery, redrive it. If deliveries can be this late, ' +
    'raise "webhook.maxAgeMs" and, with a durable inbox, "worker.knowMs".'
  );
}

/** A time in the largest unit of which it has at least one, rounded down. */
function inWords(ms: number): string {
  const [unit, size] = UNITS.find((one) => ms >= one[1]) ?? UNITS[3];
  const count = Math.floor(ms / size);
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
