import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from './api.js';
import { Filters, filterOf } from './filters.js';
import { counted } from './format.js';
import { usePolled } from './polling.js';
import { listLink } from './route.js';
import { Rows, keyOf } from './rows.js';
import { Selection } from './selection.js';

const LIMIT = 50;

/**
 * The list of events. What is shown stays where it is while its states are kept up to date; what came since is told,
 * and shown on demand.
 *
 * @param {object} props
 * @param {Record<string, string>} props.params
 * @param {readonly string[]} props.handlers
 * @param {Map<string, string>} props.trail by the cursor of a page, the link to the page before
 * @param {number} props.acted grows with every action done
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function EventList({ params, handlers, trail, acted, ask }) {
  const { order = '', after = '' } = params;
  const filter = filterOf(params);
  const query = { ...filter, order: order === 'oldest' ? 'oldest' : 'newest', limit: LIMIT };
  const question = JSON.stringify({ ...query, after });
  const {
    value: fresh,
    error,
    reload,
  } = usePolled(
    question,
    /** @returns {Promise<import('./api.js').EventPage>} */
    (signal) => get('events', after ? { ...query, after } : query, signal),
  );
  const [shown, setShown] = useState({ question: '', acted, page: fresh });
  const [selected, setSelected] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const [allMatching, setAllMatching] = useState(false);
  const several = useRef(false);

  useEffect(() => {
    setSelected(new Set());
    setAllMatching(false);
  }, [question, acted]);
  useEffect(reload, [acted]);

  // The page as it was first answered stays, until another is asked for or something was done.
  const kept = shown.question === question && shown.acted === acted && shown.page !== undefined;
  useEffect(() => {
    if (fresh && !kept) setShown({ question, acted, page: fresh });
  }, [fresh, kept]);
  const page = kept ? shown.page : fresh;
  if (!page) {
    return html`${heading()}
      <p class="quiet loading">${error && error.status === 400 ? error.message : 'Loading …'}</p>`;
  }

  const current = new Map((fresh ?? page).events.map((event) => [keyOf(event), event]));
  const events = page.events.map((event) => current.get(keyOf(event)) ?? event);
  const known = new Set(events.map(keyOf));
  const added = [...current.keys()].filter((key) => !known.has(key)).length;
  several.current ||= events.some(({ company }) => company !== 'default');
  const companies = several.current || Boolean(filter.company);
  const next = listLink({ ...filter, order, after: page.next });
  if (page.next) trail.set(page.next, listLink({ ...filter, order, after }));

  return html`
    ${heading()}
    <${Filters}
      params=${params}
      handlers=${handlers}
      companies=${companies}
      types=${[...new Set(events.map(({ eventType }) => eventType))]}
      onFilter=${(/** @type {Record<string, string>} */ given) => {
        location.hash = listLink(given);
      }}
    />
    ${
      events.length === 0
        ? html`<${Nothing} filtered=${Object.keys(filter).length > 0} later=${Boolean(after)} />`
        : html`<${Selection}
            events=${events}
            selected=${selected}
            onSelect=${setSelected}
            filter=${filter}
            more=${Boolean(page.next ?? after)}
            allMatching=${allMatching}
            onAllMatching=${setAllMatching}
            ask=${ask}
          />`
    }
    <div aria-live="polite" class="fresh">
      ${
        added > 0 &&
        html`<button type="button" onClick=${() => setShown({ question, acted, page: fresh })}>
          ${added >= LIMIT ? `${LIMIT} or more` : added} new ${added === 1 ? 'event' : 'events'}:
          show
        </button>`
      }
    </div>
    ${
      events.length > 0 &&
      html`<${Rows}
        events=${events}
        companies=${companies}
        selected=${selected}
        allMatching=${allMatching}
        onSelect=${(/** @type {ReadonlySet<string>} */ keys) => {
          setAllMatching(false);
          setSelected(keys);
        }}
      />`
    }
    <nav class="pages" aria-label="Pages">
      ${
        after &&
        html`<a href=${listLink({ ...filter, order })}>First page</a>
          ${trail.has(after) && html`<a href=${trail.get(after)}>Page before</a>`}`
      }
      ${page.next && html`<a href=${next} rel="next">Next page</a>`}
      <span class="quiet">${counted(events.length, 'event')} on this page</span>
    </nav>
  `;
}

function heading() {
  return html`<h1 tabindex="-1">Events</h1>`;
}

/** @param {{ filtered: boolean, later: boolean }} props */
function Nothing({ filtered, later }) {
  if (filtered || later) {
    return html`<p class="empty">
      <strong>No event matches.</strong> <a href="#/events">Show all events</a>
    </p>`;
  }
  return html`<p class="empty">
    <strong>Nothing received yet.</strong> Send a test webhook with
    <code>payments.sendTestWebhook()</code>, and it shows up here.
  </p>`;
}
