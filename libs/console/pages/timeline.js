import { html } from 'htm/preact';
import { traceOf } from './event-facts.js';
import { Badge, Foreign, Time, counted, duration, number } from './format.js';
import { Copy } from './payload.js';
import { eventLink } from './route.js';

/** @typedef {import('./payment-state.js').Payment} Payment */
/** @typedef {import('./api.js').StoredEvent} StoredEvent */
/** @typedef {import('./api.js').Payment['expectations'][number]} Expectation */
/** @typedef {{ at: string, badge: string, label?: string, what: unknown, detail?: unknown }} Entry */

/**
 * All that the inbox knows about a payment, in the order of time.
 *
 * @param {{ payment: Payment, order: 'oldest' | 'newest' }} props
 */
export function Timeline({ payment: { events, expectation }, order }) {
  const entries = [
    ...(expectation === null ? [] : expectationEntries(expectation)),
    ...events.toReversed().flatMap(eventEntries),
  ].toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
  if (order === 'newest') entries.reverse();
  return html`<ol class="timeline">
    ${entries.map(
      ({ at, badge, label, what, detail }, index) =>
        html`<li key=${index}>
          <${Time} at=${at} />
          <${Badge} state=${badge}>${label ?? badge}<//>
          <div>${what} ${detail}</div>
        </li>`,
    )}
  </ol>`;
}

/** @type {Partial<Record<Expectation['request'], string>>} */
const REQUESTS = {
  running: 'The request to the service is under way.',
  answered: 'The service answered the request with an error.',
  unknown: 'The request has no answer.',
};

/**
 * @param {Expectation} expectation
 * @returns {Entry[]}
 */
function expectationEntries(expectation) {
  const { createdAt, request, transactionId, state, dueBy, lastPoll, polls, lostPolls } =
    expectation;
  const { fulfilled, cancelled, nextPollAt } = expectation;
  const requested =
    transactionId === null
      ? REQUESTS[request]
      : html`The transaction is <${Foreign} text=${transactionId} class="id" />.`;
  /** @type {Entry[]} */
  const entries = [
    {
      at: createdAt,
      badge: 'waiting',
      label: 'expected',
      what: 'The application expects this payment.',
      detail: html`<small>${requested}</small>`,
    },
  ];
  if (lastPoll !== null) {
    const { at, result, detail } = lastPoll;
    const lost = lostPolls > 0 && ` ${counted(lostPolls, 'poll')} in a row had no result.`;
    const before = polls > 1 && `, ${number(polls - 1)} before it`;
    const what = html`Last poll${before}: the result is ${result}.`;
    const text = html`<small>${detail && html`<${Foreign} text=${detail} />`}${lost}</small>`;
    entries.push({
      at,
      badge: result === 'pending' ? 'unpaid' : 'polled',
      label: 'poll',
      what,
      detail: text,
    });
  }
  if (state === 'overdue' && dueBy !== null) {
    const badge = lastPoll?.result === 'pending' ? 'unpaid' : 'overdue';
    entries.push({ at: dueBy, badge, label: 'overdue', what: 'No event came by this time.' });
  }
  if (fulfilled !== null) {
    const what = html`The event <${Foreign} text=${fulfilled.eventType} class="type" /> fulfilled
      the expectation.`;
    entries.push({ at: fulfilled.at, badge: 'fulfilled', what });
  }
  if (cancelled) {
    const who =
      cancelled.by === null ? 'The application' : html`<${Foreign} text=${cancelled.by} />`;
    const detail = cancelled.note && html`<small><${Foreign} text=${cancelled.note} /></small>`;
    entries.push({
      at: cancelled.at,
      badge: 'cancelled',
      label: 'closed',
      what: html`${who} closed the expectation.`,
      detail,
    });
  }
  if (nextPollAt !== null) {
    entries.push({ at: nextPollAt, badge: 'planned', what: 'The next poll is due.' });
  }
  return entries;
}

/** @type {Record<StoredEvent['source'], string>} */
const SOURCES = {
  webhook: 'Webhook request',
  poll: 'A poll found',
  overdue: 'The module reported',
};

/**
 * @param {StoredEvent} event
 * @returns {Entry[]}
 */
function eventEntries(event) {
  const { company, id, source, eventType, receivedAt, repeats, deliveries, pruned, stale } = event;
  const trace = traceOf(event);
  const note = stale ? 'too old, not handled' : pruned && 'its data was deleted';
  const received = {
    at: receivedAt,
    badge: source === 'overdue' ? 'overdue' : 'received',
    label: source,
    what: html`${SOURCES[source]}:${' '}<a href=${eventLink({ company, id })}
        ><${Foreign} text=${eventType} class="type"
      /></a>`,
    detail: html`<small
      ><${Foreign} text=${id} class="id" />${note && ` (${note})`}
      ${trace && html`, trace <span class="id">${trace}</span> <${Copy} text=${trace} what="trace id" small=${true} />`}
    </small>`,
  };
  const duplicates = repeats.map((repeat) => ({
    at: repeat.receivedAt,
    badge: 'skipped',
    label: 'duplicate',
    what: 'The service sent the event again with another id. It was not handled again.',
    detail: html`<small><${Foreign} text=${repeat.id} class="id" /></small>`,
  }));
  return [received, ...duplicates, ...deliveries.flatMap(deliveryEntries)];
}

/**
 * @param {import('./api.js').Delivery} delivery
 * @returns {Entry[]}
 */
function deliveryEntries({ handler, state, dueAt, finishedAt, history }) {
  const name = html`<${Foreign} text=${handler} class="type" />`;
  const entries = history.map(({ attempt, startedAt, endedAt, outcome, error }, index) => {
    const took = duration(Date.parse(endedAt) - Date.parse(startedAt));
    const isSame = error !== null && error === history[index - 1]?.error;
    /** @type {Entry} */
    const entry = {
      at: startedAt,
      badge: outcome,
      what: html`Attempt ${attempt} of ${name} <small>took ${took}</small>`,
      detail: isSame
        ? html`<small>the same error</small>`
        : error && html`<${Foreign} text=${error} class="error" />`,
    };
    return entry;
  });
  if (state === 'dead' && finishedAt !== null) {
    entries.push({ at: finishedAt, badge: 'dead', what: html`No attempt of ${name} is left.` });
  }
  if (state === 'skipped' && finishedAt !== null) {
    entries.push({ at: finishedAt, badge: 'skipped', what: html`An operator skipped ${name}.` });
  }
  if (dueAt !== null) {
    entries.push({ at: dueAt, badge: 'planned', what: html`The next attempt of ${name} is due.` });
  }
  return entries;
}
