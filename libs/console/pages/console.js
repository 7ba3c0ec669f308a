import { html, render } from 'htm/preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { get } from './api.js';
import { AuditTrail } from './audit.js';
import { Confirm } from './dialog.js';
import { EventPage } from './event.js';
import { ExpectationList } from './expectations.js';
import { Failures } from './failures.js';
import { visible } from './format.js';
import { EventList } from './list.js';
import { Masthead, Notices, PAGES } from './masthead.js';
import { Overview, RANGES } from './overview.js';
import { PaymentPage } from './payment.js';
import { Permission } from './permission.js';
import { usePolled } from './polling.js';
import { Processes } from './processes.js';
import { useRoute } from './route.js';
import { SearchResults } from './search.js';
import { Setup } from './setup.js';
import { ShortcutHelp, useShortcuts } from './shortcuts.js';

/** @typedef {import('./actions.js').Action} Action */

function Console() {
  const { hash, route } = useRoute();
  const minutes = rangeOf(route);
  const polled = usePolled(
    String(minutes),
    /** @returns {Promise<import('./api.js').Overview & { askedAt: number }>} */
    async (signal) => ({ ...(await get('overview', { minutes }, signal)), askedAt: Date.now() }),
  );
  // A new range starts a new request. Until its response arrives, show the previous response.
  const last = useRef(polled.value);
  const overview = (last.current = polled.value ?? last.current);
  const [action, setAction] = useState(/** @type {Action | null} */ (null));
  const [notice, setNotice] = useState(/** @type {import('./actions.js').Notice | null} */ (null));
  const [acted, setActed] = useState(0);
  const [helping, setHelping] = useState(false);
  const help = useCallback(() => setHelping(true), []);
  useShortcuts(help);
  const trail = useRef(new Map());
  const list = useRef('#/events');
  if (route.view === 'events') list.current = hash;
  // This text does not contain the filter, so that the focus stays in the filter's field if only the filter changes.
  const where = `${hash.replace(/\?.*/s, '')} ${route.params.after ?? ''}`;

  useEffect(() => {
    document.title = `${titleOf(route)} · Payments inbox`;
  }, [hash]);
  const first = useRef(true);
  useEffect(() => {
    if (first.current) first.current = false;
    else document.querySelector('h1')?.focus();
    setNotice(null);
  }, [where]);

  const done = (/** @type {import('./actions.js').Notice} */ result) => {
    setAction(null);
    setNotice(result);
    setActed((count) => count + 1);
    polled.reload();
  };
  const ask = useCallback((/** @type {Action} */ wanted) => setAction(wanted), []);
  return html`<${Permission.Provider} value=${overview?.may ?? 'read'}>
    <${Masthead} route=${route} overview=${overview} onHelp=${help} />
    <${Notices}
      error=${polled.error}
      since=${polled.since}
      stats=${overview?.stats}
      notice=${notice}
      ask=${ask}
    />
    <main>
      ${
        route.view === 'unknown'
          ? html`<${UnknownAddress} hash=${hash} />`
          : overview
            ? html`<${View}
                route=${route}
                overview=${overview}
                minutes=${minutes}
                acted=${acted}
                trail=${trail.current}
                list=${list.current}
                ask=${ask}
              />`
            : html`<p class="quiet loading">
                ${polled.error ? 'No data yet.' : 'Loading the inbox …'}
              </p>`
      }
    </main>
    ${helping && html`<${ShortcutHelp} onClose=${() => setHelping(false)} />`}
    ${action && html`<${Confirm} action=${action} onDone=${done} onCancel=${() => setAction(null)} />`}
  <//>`;
}

/**
 * @param {object} props
 * @param {import('./route.js').Route} props.route
 * @param {import('./api.js').Overview & { askedAt: number }} props.overview
 * @param {number} props.minutes
 * @param {number} props.acted
 * @param {Map<string, string>} props.trail
 * @param {string} props.list link to the list with its last filter and page
 * @param {(action: Action) => void} props.ask
 */
function View({ route, overview, minutes, acted, trail, list, ask }) {
  if (route.view === 'event') {
    const clockMs = Date.parse(overview.now) - overview.askedAt;
    return html`<${EventPage}
      company=${route.company}
      id=${route.id}
      back=${list}
      clockMs=${clockMs}
      acted=${acted}
      ask=${ask}
    />`;
  }
  if (route.view === 'payment') {
    return html`<${PaymentPage}
      company=${route.company}
      payment=${route.id}
      order=${route.params.order === 'newest' ? 'newest' : 'oldest'}
      overview=${overview}
      acted=${acted}
      ask=${ask}
    />`;
  }
  if (route.view === 'search') {
    return html`<${SearchResults} text=${route.params.for ?? ''} overview=${overview} />`;
  }
  if (route.view === 'events') {
    return html`<${EventList}
      params=${route.params}
      handlers=${overview.handlers.map(({ name }) => name)}
      trail=${trail}
      acted=${acted}
      ask=${ask}
    />`;
  }
  if (route.view === 'expectations') {
    return html`<${ExpectationList}
      params=${route.params}
      counts=${overview.expectations}
      trail=${trail}
      acted=${acted}
      ask=${ask}
    />`;
  }
  if (route.view === 'failures') return html`<${Failures} acted=${acted} ask=${ask} />`;
  if (route.view === 'processes') {
    return html`<${Processes} handlers=${overview.handlers} acted=${acted} ask=${ask} />`;
  }
  if (route.view === 'audit') return html`<${AuditTrail} params=${route.params} acted=${acted} />`;
  if (route.view === 'setup') {
    const company = route.params.company ?? '';
    return html`<${Setup} key=${company} company=${company} />`;
  }
  const onRange = (/** @type {number} */ wanted) => {
    location.hash = wanted === 60 ? '#/' : `#/?minutes=${wanted}`;
  };
  return html`<${Overview}
    overview=${overview}
    minutes=${minutes}
    onRange=${onRange}
    ask=${ask}
  />`;
}

/** @param {{ hash: string }} props */
function UnknownAddress({ hash }) {
  return html`<h1 tabindex="-1">Unknown address</h1>
    <p class="empty">
      The console has no page <code>${visible(hash)}</code>. <a href="#/">Go to the overview</a>
    </p>`;
}

/** @param {import('./route.js').Route} route */
function titleOf({ view, id }) {
  if (view === 'event' || view === 'payment') return visible(id);
  if (view === 'search') return 'Search';
  return PAGES.find((page) => page.view === view)?.label ?? 'Unknown address';
}

/** @param {import('./route.js').Route} route */
function rangeOf({ view, params }) {
  if (view !== 'overview') return 1;
  return Object.hasOwn(RANGES, params.minutes ?? '') ? Number(params.minutes) : 60;
}

const root = /** @type {HTMLElement} */ (document.getElementById('console'));
root.replaceChildren();
render(html`<${Console} />`, root);
