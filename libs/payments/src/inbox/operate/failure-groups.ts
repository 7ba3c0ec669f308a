import { hash } from 'node:crypto';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { FailedDelivery, InboxStore } from '../store/inbox-store.js';
import { parsedBody } from '../store/shared-records.js';
import { assertText, MAX_NOTE, MAX_WHO } from '../store/stored-event.js';

const MAX_GROUPS = 50;
const HOUR_MS = 3_600_000;
/** The number of hours in {@link FailureGroup.trend}. */
const TREND_HOURS = 24;
/** Maximum number of acknowledgements that are read. */
const MAX_ACKNOWLEDGED = 1000;

/**
 * Matches what may differ between errors of one group: UUIDs, hexadecimal ids of 8 or more digits, numbers of 4 or more
 * digits, and shorter numbers that are not part of a name. A number from 100 to 599 may be an HTTP status, so the
 * pattern matches it only if it is a duration in seconds or milliseconds.
 */
const NUMBERS = new RegExp(
  [
    /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/,
    /(?<![\da-z])(?=[a-f]*\d)[\da-f]{8,}(?![\da-z])/,
    /\d{4,}/,
    /(?<![\da-z_])(?![1-5]\d\d(?![\da-z]| m?s\b))\d+/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
);
const AROUND_NUMBERS = new RegExp(`(${NUMBERS.source})`, NUMBERS.flags);

/** Deliveries to one handler that failed with the same error. Ids and numbers in the error may differ. */
export interface FailureGroup extends Omit<FailedDelivery, 'failedAt'> {
  /** The error of the delivery that failed last, exactly as stored. {@link eventId} is the event of this delivery. */
  readonly error: string;
  /** Number of deliveries in the group. */
  readonly count: number;
  /** The earliest time at which the last attempt of one of these deliveries ended. */
  readonly oldestAt: Date;
  /** The latest time at which the last attempt of one of these deliveries ended. */
  readonly newestAt: Date;
  /** The error in parts, whose texts together are `error`. Every second part is an id or a number, which may differ. */
  readonly parts: readonly string[];
  /** Number of companies whose deliveries are in the group. */
  readonly companies: number;
  /**
   * Number of deliveries whose last failed attempt ended in each of the last 24 hours, the oldest first. The last hour
   * is not over yet.
   */
  readonly trend: readonly number[];
  /** The last acknowledgement of the group; `null` if there is none. */
  readonly acknowledged: StoredAcknowledgement | null;
}

/** The failed deliveries, grouped by handler, state and error; see `PaymentInbox.failures()`. */
export interface Failures {
  /** At most 50 groups. The group with the most deliveries is first. */
  readonly groups: readonly FailureGroup[];
  /** Whether there are failed deliveries or groups that {@link groups} does not contain. */
  readonly more: boolean;
}

/** The note of an operator on a group of failures, and the fields of the group when the operator saw it. */
export interface Acknowledgement extends Pick<
  FailureGroup,
  'handler' | 'state' | 'error' | 'count' | 'newestAt'
> {
  /** Text for other operators, 1 to 500 characters; `null` to delete the note of the group. */
  readonly note: string | null;
  /** The operator, 1 to 200 characters; `null` if not known. */
  readonly who: string | null;
}

export interface StoredAcknowledgement extends Pick<Acknowledgement, 'who'> {
  readonly note: string;
  /** When the group was acknowledged, by the store clock. */
  readonly at: Date;
  /** Whether, since the acknowledgement, the group got more deliveries or one of its deliveries failed. */
  readonly changed: boolean;
}

/**
 * Number of characters of an error that are compared. The end of an error is not compared, because a store cuts long
 * errors, and two errors of one group can be cut at different places.
 */
const COMPARED = 300;
/** Number of errors that are grouped without a pause. During the pause, the event loop can run other work. */
const AT_ONCE = 500;

/** Returns the start of the error without its ids and numbers. Errors with the same result are one group. */
export function errorGroup(error: string): string {
  return error
    .slice(0, 2 * COMPARED)
    .replace(NUMBERS, '#')
    .slice(0, COMPARED);
}

/**
 * Splits an error into parts. The second part, the fourth part and so on are ids and numbers, which may differ between
 * the errors of a {@link FailureGroup}. All parts together are the error.
 */
export function errorParts(error: string): string[] {
  return error.split(AROUND_NUMBERS);
}

/** Groups the failed deliveries, and stores the acknowledgements of the groups. */
export class FailureGroups {
  constructor(
    private readonly store: InboxStore,
    private readonly runtime: Pick<PaymentsRuntime, 'now'>,
  ) {}

  async list(): Promise<Failures> {
    const { failed, more } = await this.store.failures();
    const byGroup = new Map<string, Group>();
    for (const [index, one] of failed.entries()) {
      if (index % AT_ONCE === AT_ONCE - 1) await new Promise((resolve) => setImmediate(resolve));
      const key = keyOf(one);
      const group = byGroup.get(key) ?? { all: [], newest: one };
      byGroup.set(key, group);
      group.all.push(one);
      if (one.failedAt > group.newest.failedAt) group.newest = one;
    }
    const groups = [...byGroup].toSorted(
      ([, a], [, b]) => b.all.length - a.all.length || +b.newest.failedAt - +a.newest.failedAt,
    );
    const acknowledged = await this.#acknowledged();
    return {
      groups: groups
        .slice(0, MAX_GROUPS)
        .map(([key, group]) => this.#describe(group, acknowledged.get(hashOf(key)))),
      more: more || groups.length > MAX_GROUPS,
    };
  }

  /** @throws TypeError if a field is out of bounds. */
  async acknowledge(acknowledgement: Acknowledgement): Promise<void> {
    const { note, who, count, newestAt } = acknowledgement;
    const key = hashOf(keyOf(acknowledgement));
    if (note === null) return this.store.records.remove('acknowledgement', key);
    assertText('note', note, MAX_NOTE);
    if (who !== null) assertText('who', who, MAX_WHO);
    const body = JSON.stringify({ note, who, count, newestMs: newestAt.getTime() });
    await this.store.records.put({ kind: 'acknowledgement', key, body });
  }

  async #acknowledged(): Promise<Map<string, AcknowledgedGroup>> {
    const records = await this.store.records.list('acknowledgement', MAX_ACKNOWLEDGED);
    return new Map(
      records.flatMap((record): [string, AcknowledgedGroup][] => {
        const body = parsedBody(record) as Omit<AcknowledgedGroup, 'at'> | undefined;
        return body === undefined ? [] : [[record.key, { ...body, at: record.changedAt }]];
      }),
    );
  }

  #describe({ all, newest }: Group, known: AcknowledgedGroup | undefined): FailureGroup {
    const trend = Array.from({ length: TREND_HOURS }, () => 0);
    const thisHour = hourOf(this.runtime.now());
    let oldestAt = newest.failedAt;
    for (const { failedAt } of all) {
      // The clock of the store may be ahead of the clock of this process.
      const hoursAgo = Math.max(0, thisHour - hourOf(failedAt.getTime()));
      if (hoursAgo < TREND_HOURS) trend[TREND_HOURS - 1 - hoursAgo]! += 1;
      if (failedAt < oldestAt) oldestAt = failedAt;
    }
    const { failedAt: newestAt, ...facts } = newest;
    const count = all.length;
    return {
      ...facts,
      count,
      oldestAt,
      newestAt,
      parts: errorParts(newest.error),
      companies: new Set(all.map(({ company }) => company)).size,
      trend,
      acknowledged: known === undefined ? null : acknowledgementOf({ count, newestAt }, known),
    };
  }
}

interface Group {
  readonly all: FailedDelivery[];
  /** The delivery that failed last. */
  newest: FailedDelivery;
}

interface AcknowledgedGroup extends Pick<Acknowledgement, 'who' | 'count'> {
  readonly note: string;
  readonly newestMs: number;
  readonly at: Date;
}

function acknowledgementOf(
  { count, newestAt }: Pick<FailureGroup, 'count' | 'newestAt'>,
  known: AcknowledgedGroup,
): StoredAcknowledgement {
  const { note, who, at } = known;
  return { note, who, at, changed: count > known.count || newestAt.getTime() > known.newestMs };
}

function keyOf({ handler, state, error }: Pick<FailedDelivery, 'handler' | 'state' | 'error'>) {
  return JSON.stringify([handler, state, errorGroup(error)]);
}

/** Hashes a key, because the key of a shared record has a limited length. */
function hashOf(key: string): string {
  return hash('sha256', key, 'hex');
}

function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS);
}
