import { html } from 'htm/preact';
import { Foreign, Time, counted, relative, urgentFirst, visible } from './format.js';

/** @typedef {import('./api.js').StoredEvent} StoredEvent */
/** @typedef {import('./api.js').Payment['expectations'][number]} Expectation */
/** @typedef {import('./api.js').Delivery} Delivery */

/** The type of the event of a payment that the customer has made. */
const PAID = 'transaction.completed';

/**
 * What is known about one payment.
 *
 * @typedef {object} Payment
 * @property {string} company
 * @property {string | null} transaction
 * @property {string | null} reference
 * @property {StoredEvent[]} events the newest first
 * @property {Expectation | null} expectation
 */

/**
 * The state of a payment: a badge, and one or two sentences.
 *
 * @typedef {{ badge: string, label: string, text: unknown }} PaymentState
 */

/**
 * Groups events and expectations by payment, in their order. Events and expectations with the same transaction are one
 * payment. Without a transaction, a reference is compared, unless it belongs to several transactions.
 *
 * @param {{ events: readonly StoredEvent[], expectations: readonly Expectation[] }} found
 * @returns {Payment[]}
 */
export function paymentsOf({ events, expectations }) {
  const parts = [
    ...events.map((event) => ({ ...namesOf(event, event.orderingKey), event })),
    ...expectations.map((one) => ({ ...namesOf(one, one.transactionId), expectation: one })),
  ];
  /** @type {Map<string, Set<string>>} */
  const transactions = new Map();
  for (const { company, transaction, reference } of parts) {
    if (transaction === null || reference === null) continue;
    const key = `${company}\n${reference}`;
    transactions.set(key, (transactions.get(key) ?? new Set()).add(transaction));
  }
  /** @param {typeof parts[number]} part */
  const keyOf = ({ company, transaction, reference, ...part }) => {
    const known = [...(transactions.get(`${company}\n${reference}`) ?? [])];
    const of = transaction ?? (known.length === 1 ? known[0] : null);
    if (of !== null) return `${company}\nt\n${of}`;
    if (reference !== null) return `${company}\nr\n${reference}`;
    return `${company}\ne\n${'event' in part ? part.event.id : ''}`;
  };
  return [...Map.groupBy(parts, keyOf).values()].map((group) => ({
    company: /** @type {typeof parts[number]} */ (group[0]).company,
    transaction: firstOf(group.map(({ transaction }) => transaction)),
    reference: firstOf(group.map(({ reference }) => reference)),
    events: group.flatMap((part) => ('event' in part ? [part.event] : [])),
    expectation: firstOf(group.map((part) => ('expectation' in part ? part.expectation : null))),
  }));
}

/**
 * @param {{ company: string, reference: string | null }} part
 * @param {string | null} transaction
 */
function namesOf({ company, reference }, transaction) {
  return { company, reference, transaction };
}

/**
 * @template T
 * @param {(T | null)[]} values
 * @returns {T | null}
 */
function firstOf(values) {
  return values.find((value) => value !== null) ?? null;
}

/**
 * @param {Pick<Payment, 'events' | 'expectation'>} payment
 * @param {readonly string[]} paused names of paused handlers, or `*`
 * @returns {PaymentState}
 */
export function stateOf({ events, expectation }, paused) {
  const received = events.filter(({ source }) => source !== 'overdue');
  if (received.length > 0) return receivedState(received, paused);
  if (expectation !== null) return expectedState(expectation);
  return {
    badge: 'overdue',
    label: 'overdue',
    text: 'No event came in time. The expectation was deleted.',
  };
}

/**
 * @param {readonly StoredEvent[]} events
 * @param {readonly string[]} paused
 * @returns {PaymentState}
 */
function receivedState(events, paused) {
  const isPaid = events.some(({ eventType }) => eventType === PAID);
  const booked = isPaid ? 'booked' : 'handled';
  const [event] = /** @type {[StoredEvent]} */ (events);
  const type = html`<${Foreign} text=${event.eventType} class="type" />`;
  const deliveries = events.flatMap((one) => one.deliveries);
  const state = urgentFirst(deliveries)[0]?.state;
  const worst = deliveries.filter((one) => one.state === state);
  const [first] = worst;
  if (first === undefined) {
    if (event.stale) {
      const text = `Not ${booked}: the event was too old when it was received, so no handler ran.`;
      return { badge: 'stale', label: 'stale', text };
    }
    if (event.pruned) {
      const text = html`${type} was received at <${Time} at=${event.receivedAt} />. Its data was
        deleted since then, after all handlers were done or skipped.`;
      return { badge: 'done', label: booked, text };
    }
    if (event.eventType === 'webhook.test') {
      return { badge: 'done', label: 'test', text: 'A test webhook. No handler runs for it.' };
    }
    const text = html`Not ${booked}: no handler matched ${type} when it was received.`;
    return { badge: 'unhandled', label: 'unhandled', text };
  }
  const handler = html`handler <${Foreign} text=${first.handler} class="type" />`;
  const others =
    worst.length > 1 && ` The same state: ${counted(worst.length - 1, 'other delivery')}.`;
  if (state === 'dead') {
    const text = html`Not ${booked}: ${handler} ${failed(first)}; it is a dead letter.${others}`;
    return { badge: 'dead', label: `not ${booked}`, text };
  }
  if (state === 'pending') {
    const why = isPaused(first, paused)
      ? html`${handler} is paused.`
      : first.lastError === null
        ? html`${handler} waits for its first attempt.`
        : html`${handler} ${failed(first)}. The next attempt is ${soon(first.dueAt)}.`;
    const text = html`Not ${booked} yet: ${why}${others}`;
    return { badge: 'pending', label: `not ${booked} yet`, text };
  }
  if (state === 'running') {
    const before = first.lastError !== null && html` It ${failed(first, 1)} before.`;
    const text = html`Not ${booked} yet: ${handler} is running.${before}${others}`;
    return { badge: 'running', label: 'running', text };
  }
  if (state === 'skipped') {
    const text = html`Not ${booked}: an operator skipped ${handler}.${others}`;
    return { badge: 'skipped', label: `not ${booked}`, text };
  }
  const at = worst.map(({ finishedAt }) => finishedAt ?? '').reduce((a, b) => (a > b ? a : b));
  const text = isPaid
    ? html`Paid and booked at <${Time} at=${at} />.`
    : html`${type} was received, and handled at <${Time} at=${at} />.`;
  return { badge: 'done', label: booked, text };
}

/** @param {Delivery} delivery @param {number} current number of attempts that have not ended */
function failed({ attempts, lastError }, current = 0) {
  const ended = attempts - current;
  const times = ended > 1 ? ` ${ended} times, last` : '';
  return html`failed${times} with “<${Foreign} text=${lastError ?? ''} class="cause" />”`;
}

/** @param {Delivery} delivery @param {readonly string[]} paused */
function isPaused({ handler }, paused) {
  return paused.includes('*') || paused.includes(handler);
}

/** @param {string | null} at */
function soon(at) {
  return at === null || Date.parse(at) <= Date.now() ? 'due now' : relative(new Date(at));
}

/**
 * What is known about the request of an expected payment without a transaction.
 *
 * @type {Record<Expectation['request'], [badge: string, label: string, text: string]>}
 */
const REQUESTS = {
  never: ['waiting', 'expected', 'Expected. The module knows of no request and no transaction.'],
  running: ['running', 'requested', 'The request to the service is under way.'],
  answered: ['overdue', 'rejected', 'Requested; the service answered with an error.'],
  unknown: [
    'overdue',
    'unknown',
    'Requested; no answer. It is unknown whether the payment exists.',
  ],
  accepted: ['waiting', 'requested', 'Requested; the service was not asked about it yet.'],
};

/**
 * @param {Expectation} expectation
 * @returns {PaymentState}
 */
function expectedState(expectation) {
  const { state, request, lastPoll, fulfilled, cancelled, dueBy } = expectation;
  if (fulfilled !== null) {
    const text = html`<${Foreign} text=${fulfilled.eventType} class="type" /> was received at${' '}
      <${Time} at=${fulfilled.at} />.`;
    return { badge: 'fulfilled', label: 'received', text };
  }
  if (state === 'cancelled') {
    const who = cancelled?.by == null ? 'the application' : visible(cancelled.by);
    const note = cancelled?.note == null ? '.' : html`: <${Foreign} text=${cancelled.note} />`;
    const at = cancelled && html` at <${Time} at=${cancelled.at} />`;
    return { badge: 'cancelled', label: 'closed', text: html`Closed by ${who}${at}${note}` };
  }
  const overdue =
    state === 'overdue' && dueBy !== null && html` Overdue since <${Time} at=${dueBy} />.`;
  const text = html`${expectedText(expectation)}${overdue} ${nextPoll(expectation)}`;
  if (isRequestNews(expectation)) {
    return { badge: REQUESTS[request][0], label: REQUESTS[request][1], text };
  }
  if (lastPoll?.result === 'pending') {
    return state === 'waiting'
      ? { badge: 'waiting', label: 'waiting', text }
      : { badge: 'unpaid', label: 'not paid', text };
  }
  return { badge: 'overdue', label: 'unknown', text };
}

/**
 * Whether the state of the request is the last thing that is known: no poll has ended, or polls cannot find the payment
 * because its transaction is not known.
 *
 * @param {Expectation} expectation
 */
function isRequestNews({ transactionId, request, lastPoll }) {
  return (
    lastPoll === null ||
    (lastPoll.result === 'unknown' && transactionId === null && request !== 'never')
  );
}

/** @param {Expectation} expectation */
function expectedText(expectation) {
  const { state, request, lastPoll } = expectation;
  if (lastPoll === null || isRequestNews(expectation)) return REQUESTS[request][2];
  if (lastPoll.result === 'pending') {
    return `Not paid${state === 'waiting' ? ' yet' : ''}: the service says pending.`;
  }
  const detail =
    lastPoll.detail !== null &&
    html`: <${Foreign} text=${lastPoll.detail.replace(/\.?$/, '.')} class="cause" />`;
  return html`Unknown whether it is paid${detail || '.'}`;
}

/** @param {Expectation} expectation */
function nextPoll({ state, nextPollAt }) {
  if (nextPollAt !== null) return `The next poll is ${soon(nextPollAt)}.`;
  return state === 'waiting' ? 'A poll is running.' : 'No further poll is planned.';
}
