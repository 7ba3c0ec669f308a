import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { withQuery } from './api.js';

/**
 * The state of the page that its URL contains: the tab, the company, and, for the delivery log, the filter and the
 * expanded delivery. An empty company means the first company or, in the delivery log, all companies. Because the URL
 * contains this state, a reload and a link show the same content.
 * @typedef {{ tab: string, company: string, state: string, search: string, delivery: string }} Address
 */

/** The tabs by name in the URL, with their titles. @type {Record<string, string>} */
export const TABS = {
  payments: 'Payments',
  deliveries: 'Deliveries',
  faults: 'Faults',
  credentials: 'Credentials',
};

/** @returns {Address} */
function readAddress() {
  const query = new URLSearchParams(location.search);
  const tab = query.get('tab') ?? '';
  return {
    tab: Object.hasOwn(TABS, tab) ? tab : 'payments',
    company: query.get('company') ?? '',
    state: query.get('state') ?? '',
    search: query.get('search') ?? '',
    delivery: query.get('delivery') ?? '',
  };
}

/**
 * Returns the URL of an address. The URL contains the filter and the expanded delivery only if the tab is the delivery
 * log.
 *
 * @param {Partial<Address>} address
 */
export function urlOf({ tab, company, state, search, delivery }) {
  const log = tab === 'deliveries' ? { state, search, delivery } : {};
  return withQuery('/emulator', { tab, company, ...log });
}

/**
 * Returns the current address, and functions that change it. `go()` adds an entry to the browser's history, and
 * `replace()` does not.
 */
export function useAddress() {
  const [address, setAddress] = useState(readAddress);
  useEffect(() => {
    const onPopState = () => setAddress(readAddress());
    addEventListener('popstate', onPopState);
    return () => removeEventListener('popstate', onPopState);
  }, []);
  useEffect(() => {
    document.title = `${TABS[address.tab]} · payments-emulator`;
  }, [address.tab]);
  return {
    address,
    /** @param {Partial<Address>} change */
    go: (change) => {
      const next = { ...address, ...change };
      history.pushState(null, '', urlOf(next));
      setAddress(next);
      scrollTo(0, 0);
    },
    /** @param {Partial<Address>} change */
    replace: (change) => {
      const next = { ...address, ...change };
      history.replaceState(null, '', urlOf(next));
      setAddress(next);
    },
  };
}

/** A link to an address. If `go` is given, a click opens the address without loading the page again. */
export function TabLink({ to, go, children, ...attributes }) {
  const follow = (event) => {
    const opensElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!go || opensElsewhere) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${urlOf(to)} onClick=${follow} ...${attributes}>${children}</a>`;
}
