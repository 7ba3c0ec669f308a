import { useEffect, useState } from 'preact/hooks';

/** The views whose address has only one part, such as `#/events` and `#/failures`. */
const VIEWS = /** @type {const} */ ([
  'events',
  'failures',
  'expectations',
  'processes',
  'audit',
  'setup',
  'search',
]);

/**
 * The view that the hash selects: `#/`, `#/events?state=dead`, `#/events/default/evt_1`, `#/payment/default/order-1`,
 * `#/search?for=order-1`, `#/failures`, `#/expectations`, `#/processes`, `#/audit`, `#/setup`. Any other address is `unknown`.
 *
 * @typedef {object} Route
 * @property {'overview' | 'event' | 'payment' | 'unknown' | (typeof VIEWS)[number]} view
 * @property {string} company of the event or payment
 * @property {string} id of the event, or the transaction id or reference of the payment
 * @property {Record<string, string>} params
 */

/**
 * @param {string} hash
 * @returns {Route}
 */
function parseRoute(hash) {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const params = Object.fromEntries(new URLSearchParams(query));
  const parts = path.replace(/\/$/, '').split('/').map(decoded);
  const [first = '', company = '', id = ''] = parts;
  if ((first === 'events' || first === 'payment') && company && id && parts.length === 3) {
    return { view: first === 'events' ? 'event' : first, company, id, params };
  }
  const view = parts.length > 1 ? undefined : VIEWS.find((name) => name === first);
  return { view: view ?? (path === '' ? 'overview' : 'unknown'), company: '', id: '', params };
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Link to the list of events with the parameters that are set.
 *
 * @param {Record<string, string | null | undefined>} [params]
 */
export function listLink(params = {}) {
  return linkWith('#/events', params);
}

/**
 * Link to the expectations with the parameters that are set.
 *
 * @param {Record<string, string | null | undefined>} [params]
 */
export function expectationsLink(params = {}) {
  return linkWith('#/expectations', params);
}

/**
 * Link to the audit trail with the parameters that are set.
 *
 * @param {Record<string, string | null | undefined>} [params]
 */
export function auditLink(params = {}) {
  return linkWith('#/audit', params);
}

/** Link to the checks of the setup of a company. @param {string} company */
export function setupLink(company) {
  return linkWith('#/setup', { company });
}

/** @param {string} hash @param {Record<string, string | null | undefined>} params */
function linkWith(hash, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value) query.set(name, value);
  return query.size ? `${hash}?${query}` : hash;
}

/** Link to the results of a search. @param {string} text */
export function searchLink(text) {
  return linkWith('#/search', { for: text });
}

/** @param {{ company: string, id: string }} event */
export function eventLink({ company, id }) {
  return linkTo('events', company, id);
}

/**
 * Link to the page of a payment.
 *
 * @param {string} company
 * @param {string} payment the transaction id, or the reference
 * @param {Record<string, string>} [params]
 */
export function paymentLink(company, payment, params = {}) {
  return linkWith(linkTo('payment', company, payment), params);
}

/** @param {string[]} parts */
function linkTo(...parts) {
  return `#/${parts.map((part) => encodeURIComponent(part.toWellFormed())).join('/')}`;
}

/** The current route. The result changes with the hash. */
export function useRoute() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return { hash, route: parseRoute(hash) };
}
