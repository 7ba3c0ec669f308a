import { post } from './api.js';
import { counted, duration } from './format.js';

/**
 * An action of an operator. `target` is the part of the body that selects the deliveries.
 *
 * @typedef {{ events: { company: string, id: string }[], handler?: string }
 *   | { filter: Record<string, string>, handler?: string }} Target
 * @typedef {{ kind: 'redrive' | 'skip', target: Target, done?: boolean }} DeliveryAction
 *   `done`: the selected deliveries are done, so only force runs them again
 * @typedef {{ kind: 'pause' | 'resume' | 'forget', handler: string }} HandlerAction `*` pauses or resumes all handlers
 * @typedef {{ kind: 'ask' | 'close', expectations: { company: string, reference: string }[] }} ExpectationAction
 * @typedef {{ kind: 'acknowledge' | 'withdraw', group: import('./api.js').FailureGroup }} AcknowledgeAction
 * @typedef {DeliveryAction | HandlerAction | ExpectationAction | AcknowledgeAction} Action
 *
 * @typedef {object} Choice the settings in the dialog
 * @property {boolean} force
 * @property {number | undefined} ratePerSecond
 * @property {string} note for the actions `close` and `acknowledge`
 * @property {string} reason why a handler is paused
 * @property {string} until when the pause ends by itself, in the form of `datetime-local`; empty if it does not
 * @property {boolean} newestOnly whether to redrive only the newest matching event
 *
 * @typedef {{ text: string, event?: { company: string, id: string } | undefined }} Notice the result of an action, with the event if
 *   only one was redriven
 *
 * @typedef {import('./api.js').SelectionResult} SelectionResult has no `events` after a handler was forgotten, only
 *   `polls` after the action `ask`, and only `closed` after the action `close`
 */

/**
 * @param {Action} action
 * @returns {action is DeliveryAction}
 */
export function isOfDeliveries(action) {
  return action.kind === 'redrive' || action.kind === 'skip';
}

/**
 * @param {Action} action
 * @returns {action is ExpectationAction}
 */
function isOfExpectations(action) {
  return action.kind === 'ask' || action.kind === 'close';
}

/**
 * @param {Action} action
 * @returns {action is AcknowledgeAction}
 */
function isOfFailures(action) {
  return action.kind === 'acknowledge' || action.kind === 'withdraw';
}

/** @param {Action} action */
export function titleOf(action) {
  if (isOfDeliveries(action)) {
    const verb = action.done && action.kind === 'redrive' ? 'Run again' : verbs[action.kind];
    return `${verb} ${objectOf(action.target)}?`;
  }
  if (isOfExpectations(action)) {
    const count = counted(action.expectations.length, 'expectation');
    return action.kind === 'ask' ? `Ask now about ${count}?` : `Close ${count}?`;
  }
  if (isOfFailures(action)) {
    return action.kind === 'acknowledge'
      ? 'Acknowledge this failure?'
      : 'Withdraw the note on this failure?';
  }
  const whose = action.handler === '*' ? 'all handlers' : action.handler;
  return `${verbs[action.kind]} ${whose}?`;
}

/** @param {Target} target */
function objectOf(target) {
  if ('filter' in target) {
    const { state = 'dead' } = target.filter;
    const which = isUndelivered(state) ? `${state} events` : `${state} deliveries`;
    const same = target.filter.error === undefined ? '' : ' with this error';
    return `all ${which}${target.handler === undefined ? '' : ` of ${target.handler}`}${same}`;
  }
  const [first] = target.events;
  return target.events.length === 1 && first
    ? `event ${first.id}`
    : counted(target.events.length, 'event');
}

/** @param {string} state */
function isUndelivered(state) {
  return state === 'unhandled' || state === 'stale';
}

/** Events per second of a redrive for which the operator enters no rate. */
export const DEFAULT_RATE = 100;

/** How long a redrive of these events takes. @param {number} events @param {number} ratePerSecond */
export function expectedTime(events, ratePerSecond) {
  const ms = (1000 * events) / ratePerSecond;
  return ms < 1000 ? 'less than a second' : `about ${duration(ms)}`;
}

/**
 * Describes the selection. A filter without a state selects dead deliveries, or deliveries of all states with `force`.
 *
 * @param {DeliveryAction | ExpectationAction | AcknowledgeAction} action
 * @param {boolean} force
 */
export function scopeOf(action, force) {
  if (isOfFailures(action)) {
    const { handler, count, error } = action.group;
    return `${counted(count, 'delivery')}, handler ${handler}, with the error “${error}” or an error that differs only in ids`;
  }
  if (isOfExpectations(action)) {
    const [first] = action.expectations;
    return action.expectations.length === 1 && first
      ? `Expectation ${first.reference}`
      : counted(action.expectations.length, 'expectation');
  }
  const { target } = action;
  const to = target.handler === undefined ? '' : `, handler ${target.handler}`;
  if ('events' in target) {
    const [first] = target.events;
    const one = target.events.length === 1 && first;
    return `${one ? `Event ${one.id}` : `${counted(target.events.length, 'event')} selected`}${to}`;
  }
  const { state = force ? '' : 'dead', handler: _, error, ...others } = target.filter;
  const which = isUndelivered(state) ? `${state} events` : `${state} deliveries`.trim();
  const fields = Object.entries(others).map(([name, value]) => `${name} ${value}`);
  const filter = fields.length > 0 ? `, that match ${fields.join(', ')}` : '';
  const failed =
    error === undefined ? '' : `, with the error “${error}” or an error that differs only in ids`;
  return `All ${which}${to}${filter}${failed}`;
}

/**
 * @param {Action} action
 * @param {SelectionResult | null} count
 * @param {boolean} [uncounted] whether counting failed
 */
export function consequenceOf(action, count, uncounted = false) {
  if (isOfDeliveries(action)) {
    const some = uncounted ? 'The deliveries could not be counted. They' : amount(count);
    return `${some} ${consequences[action.kind]}`;
  }
  return consequences[action.kind];
}

/** The label of each action. */
const verbs = {
  redrive: 'Redrive',
  skip: 'Skip',
  pause: 'Pause',
  resume: 'Resume',
  acknowledge: 'Acknowledge',
  withdraw: 'Withdraw the note',
  forget: 'Forget',
  ask: 'Ask now',
  close: 'Close',
  stop: 'Stop',
};

const consequences = {
  pause:
    'Deliveries wait in all processes until you resume them, or until the pause ends. Running deliveries end normally. New events are still received.',
  resume: 'Waiting deliveries run. Those that have been due longest run first.',
  redrive:
    'will run. Pending deliveries keep their number of attempts; all others start again with the first attempt.',
  skip: 'will not run. Skipped deliveries stay in the inbox and can be redriven.',
  acknowledge:
    'All operators see the note. The group stays below the others until it gets more deliveries or fails again.',
  withdraw: 'The note is deleted for all operators.',
  ask: 'The module asks the payments service about the transaction, within its limit of polls per second. A cancelled expectation and a running poll do not change.',
  close:
    'The payment no longer counts as overdue, and the module no longer asks the service. An event that arrives later is still handled.',
  forget:
    'The pending and dead deliveries of this handler are skipped, and new events get no delivery for it. If a process with this handler starts, the handler appears again.',
};

/** @param {SelectionResult | null} count */
export function amount(count) {
  if (count === null) return '…';
  return `${counted(count.deliveries, 'delivery')} of ${counted(count.events, 'event')}`;
}

/** The label of the confirmation button. @param {Action} action @param {SelectionResult | null} count */
export function verbOf(action, count) {
  const verb = verbs[action.kind];
  return count === null || !isOfDeliveries(action)
    ? verb
    : `${verb} ${counted(count.deliveries, 'delivery')}`;
}

/**
 * The message after the action.
 *
 * @param {Action} action
 * @param {SelectionResult | null} count
 * @param {boolean} newestOnly whether only the newest matching event was redriven
 */
export function resultOf(action, count, newestOnly) {
  if (action.kind === 'forget') {
    return `${action.handler} is forgotten: ${counted(count?.deliveries ?? 0, 'delivery')} skipped.`;
  }
  if (isOfExpectations(action)) {
    return action.kind === 'ask'
      ? `${counted(count?.polls ?? 0, 'poll')} made due.`
      : `${counted(count?.closed ?? 0, 'expectation')} closed.`;
  }
  if (isOfFailures(action)) {
    return action.kind === 'withdraw' ? 'The note is withdrawn.' : 'The group is acknowledged.';
  }
  if (!isOfDeliveries(action)) {
    const whose = action.handler === '*' ? 'All handlers' : action.handler;
    return `${whose} ${action.handler === '*' ? 'are' : 'is'} ${action.kind === 'pause' ? 'paused' : 'resumed'}.`;
  }
  if (action.kind === 'skip') return `${amount(count)} skipped.`;
  if ('events' in action.target) return `${amount(count)} redriven.`;
  return newestOnly
    ? `${amount(count)} redriven: the newest that matches. Look at its result before you redrive all.`
    : `Redrive of ${amount(count)} started.`;
}

/**
 * Performs the action, or only counts the deliveries (`dryRun`).
 *
 * @param {Action} action
 * @param {Choice} choice
 * @param {boolean} dryRun
 * @returns {Promise<SelectionResult>}
 */
export function perform(action, choice, dryRun) {
  const { force, ratePerSecond, note, newestOnly, reason, until } = choice;
  if (isOfExpectations(action)) {
    const { kind, expectations } = action;
    return post(kind, { expectations, ...(kind === 'close' && { note }) });
  }
  if (isOfFailures(action)) {
    const { kind, group } = action;
    const { handler, state, error, count, newestAt } = group;
    const seen = { handler, state, error, count, newestAt };
    return post(kind, { ...seen, ...(kind === 'acknowledge' && { note }) });
  }
  if (action.kind === 'pause') {
    const ends = until !== '' && { until: new Date(until).toISOString() };
    return post('pause', { handler: action.handler, ...(reason && { reason }), ...ends });
  }
  if (!isOfDeliveries(action)) return post(action.kind, { handler: action.handler });
  const again = action.kind === 'redrive' && {
    force,
    ...('filter' in action.target && { ratePerSecond, newestOnly }),
  };
  return post(action.kind, { ...action.target, ...again, dryRun });
}
