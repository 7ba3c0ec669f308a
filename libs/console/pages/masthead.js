import { html } from 'htm/preact';
import { useEffect, useRef } from 'preact/hooks';
import { capped, timeOfDay, total, visible } from './format.js';
import { PauseFacts } from './handlers.js';
import { ActionButton } from './permission.js';
import { eventLink, searchLink } from './route.js';

/** The pages of the navigation. The page of expectations exists only with the option `reconcile`. */
export const PAGES = /** @type {const} */ ([
  { view: 'overview', href: '#/', label: 'Overview' },
  { view: 'events', href: '#/events', label: 'Events' },
  { view: 'failures', href: '#/failures', label: 'Failures' },
  { view: 'expectations', href: '#/expectations', label: 'Expectations' },
  { view: 'processes', href: '#/processes', label: 'Processes' },
  { view: 'audit', href: '#/audit', label: 'Audit' },
  { view: 'setup', href: '#/setup', label: 'Setup' },
]);

/**
 * @param {object} props
 * @param {import('./route.js').Route} props.route
 * @param {import('./api.js').Overview | undefined} props.overview
 * @param {() => void} props.onHelp opens the list of keyboard shortcuts
 */
export function Masthead({ route, overview, onHelp }) {
  const { view } = route;
  const dead = total((overview?.stats.deliveries ?? []).filter(({ state }) => state === 'dead'));
  const unknown = overview?.expectations?.overdueUnknown;
  return html`<header class="masthead">
    <strong class="brand">Payments inbox</strong>
    <nav aria-label="Console">
      ${PAGES.filter(({ view: name }) => name !== 'expectations' || overview?.expectations).map(
        ({ view: name, href, label }) =>
          html`<a key=${name} href=${href} aria-current=${view === name ? 'page' : undefined}
            >${label}</a
          >`,
      )}
      ${dead.count > 0 && html`<a href="#/failures" class="badge dead">${capped(dead)} dead</a>`}
      ${unknown && unknown.count > 0 && html`<a href="#/expectations?show=unknown" class="badge overdue">${capped(unknown)} unknown<span class="unseen"> ${unknown.count === 1 ? 'payment' : 'payments'}</span></a>`}
    </nav>
    <${Search} text=${view === 'search' ? (route.params.for ?? '') : null} />
    ${overview?.who && html`<span class="who quiet">${visible(overview.who)}</span>`}
    ${overview?.may === 'read' && html`<span class="badge skipped">read only</span>`}
    <button
      type="button"
      class="keys"
      aria-label="Keyboard shortcuts"
      aria-keyshortcuts="?"
      onClick=${onHelp}
    >
      ?
    </button>
  </header>`;
}

/**
 * The search for payments, on every page.
 *
 * @param {{ text: string | null }} props the text of the page of results; `null` on other pages
 */
function Search({ text }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    if (field.current && text !== null) field.current.value = text;
  }, [text]);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const wanted = field.current?.value.trim();
    if (wanted) location.hash = searchLink(wanted);
  };
  return html`<form class="search" role="search" onSubmit=${submit}>
    <input
      id="search"
      ref=${field}
      type="search"
      maxlength="1000"
      aria-label="Search payments"
      placeholder="Reference, id or amount"
      autocomplete="off"
      spellcheck=${false}
    />
    <button type="submit">Search</button>
  </form>`;
}

/**
 * @param {object} props
 * @param {import('./api.js').ApiError | null} props.error
 * @param {Date | null} props.since
 * @param {import('./api.js').Stats | undefined} props.stats
 * @param {import('./actions.js').Notice | null} props.notice
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function Notices({ error, since, stats, notice, ask }) {
  const paused = stats?.paused ?? [];
  return html`<div class="notices">
    <div role="alert">${error && html`<${Trouble} error=${error} since=${since} />`}</div>
    ${paused.map(
      (pause) =>
        html`<p class="notice paused" key=${pause.handler}>
          <span
            ><strong>Paused:</strong>${' '}
            ${pause.handler === '*' ? 'all handlers' : html`<bdi>${visible(pause.handler)}</bdi>`}${' '}
            <${PauseFacts} pause=${pause} />. Deliveries wait. New events are still received.</span
          >
          <${ActionButton} onClick=${() => ask({ kind: 'resume', handler: pause.handler })}>
            Resume …
          <//>
        </p>`,
    )}
    <div role="status">
      ${
        notice &&
        html`<p class="notice result">
          <span>${visible(notice.text)}</span>
          ${notice.event && html`<a href=${eventLink(notice.event)}>Open the redriven event</a>`}
        </p>`
      }
    </div>
  </div>`;
}

/** @param {{ error: import('./api.js').ApiError, since: Date | null }} props */
function Trouble({ error, since }) {
  if (error.unauthorized) {
    return html`<p class="notice trouble">
      <span><strong>You are not signed in any more.</strong> The data may be out of date.</span>
      <button type="button" onClick=${() => location.reload()}>Reload and sign in</button>
    </p>`;
  }
  const when = since === null ? '' : ` since ${timeOfDay(since)}`;
  const reason = error.status === 0 ? '' : ` ${visible(error.message)}`;
  return html`<p class="notice trouble">
    <span
      ><strong>Not reachable${when}.</strong>${reason} The page keeps trying. The data may be out of
      date.</span
    >
  </p>`;
}
