import type { FailureCount, InboxStore } from '../store/inbox-store.js';

/** How many groups {@link failureGroups} returns at most: those with the most deliveries. */
const MAX_GROUPS = 50;

/**
 * What may differ between errors of one group: UUIDs, hexadecimal ids of 8 or more digits, numbers of 4 or more digits, and
 * shorter numbers that are no part of a name. A number from 100 to 599 is kept, because it may be an HTTP status, unless
 * it counts seconds or milliseconds.
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

/** Deliveries to one handler that failed with the same error, apart from ids and numbers in its text. */
export interface FailureGroup extends FailureCount {}

/** The failed deliveries by handler and error; see `PaymentInbox.failures()`. */
export interface Failures {
  /** The group with the most deliveries first. At most 50. */
  readonly groups: readonly FailureGroup[];
  /** Whether there are other failed deliveries or groups. */
  readonly more: boolean;
}

/** How many characters of an error without its numbers decide its group. Stores cut errors, so two long ones may end at different places. */
const COMPARED = 300;
/** How many errors are grouped before other work of the process gets a turn. */
const AT_ONCE = 500;

/** The start of the error without its ids and numbers. Errors with the same result are one group. */
export function errorGroup(error: string): string {
  return error
    .slice(0, 2 * COMPARED)
    .replace(NUMBERS, '#')
    .slice(0, COMPARED);
}

/** Counts failed deliveries in groups. */
export async function failureGroups(store: InboxStore): Promise<Failures> {
  const { counts, more } = await store.failures();
  const byGroup = new Map<string, FailureGroup>();
  for (const [index, one] of counts.entries()) {
    if (index % AT_ONCE === AT_ONCE - 1) await new Promise((resolve) => setImmediate(resolve));
    const key = JSON.stringify([one.handler, one.state, errorGroup(one.error)]);
    const known = byGroup.get(key);
    byGroup.set(key, known === undefined ? one : merged(known, one));
  }
  const groups = [...byGroup.values()].toSorted(
    (a, b) => b.count - a.count || +b.newestAt - +a.newestAt,
  );
  return { groups: groups.slice(0, MAX_GROUPS), more: more || groups.length > MAX_GROUPS };
}

function merged(a: FailureGroup, b: FailureGroup): FailureGroup {
  return {
    ...(a.newestAt >= b.newestAt ? a : b),
    count: a.count + b.count,
    oldestAt: a.oldestAt < b.oldestAt ? a.oldestAt : b.oldestAt,
  };
}
