import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { csvAddress, get } from './api.js';
import { Filters, filterOf } from './filters.js';
import { counted } from './format.js';
import { PageLinks } from './list-links.js';
import { Waiting, usePolled } from './polling.js';
import { Redrives } from './redrives.js';
import { listLink } from './route.js';
import { Rows, keyOf } from './rows.js';
import { Selection } from './selection.js';

/** @typedef {import('./api.js').EventPage} EventPage */

const LIMIT = 50;
/** Maximum number of requests for one page. Each request compares up to 20,000 events with the filter. */
const MAX_REQUESTS = 25;

/**
 * The list of events. The states in the rows are updated, but the rows stay in their order. A button shows the number of
 * new events and adds them to the list.
 *
 * @param {object} props
 * @param {Record<string, string>} props.params
 * @param {readonly string[]} props.handlers
 * @param {Map<string, string>} props.trail for the cursor of each page, the link to the previous page
 * @param {number} props.acted number of actions performed
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function EventList({ params, handlers, trail, acted, ask }) {
  const { order = '', after = '' } = params;
  const filter = filterOf(params);
  const query = { ...filter, order: order === 'oldest' ? 'oldest' : 'newest', limit: LIMIT };
  const question = JSON.stringify({ ...query, after });
  // After an action, request the list again. Until the response arrives, show the previous response.
  const asked = `${acted} ${question}`;
  const { value: fresh, error } = usePolled(
    asked,
    /** @returns {Promise<EventPage>} */
    (signal) => readPage(query, after, signal),
  );
  const [shown, setShown] = useState(
    /** @type {{ asked: string, question: string, page: EventPage | undefined }} */
    ({ asked: '', question: '', page: undefined }),
  );
  const [selected, setSelected] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const [allMatching, setAllMatching] = useState(false);
  const several = useRef(false);

  useEffect(() => {
    setSelected(new Set());
    setAllMatching(false);
  }, [asked]);
  const show = () => setShown({ asked, question, page: fresh });
  useEffect(() => {
    if (fresh && shown.asked !== asked) show();
  }, [fresh, asked]);

  const kept = shown.question === question ? shown.page : undefined;
  const page = shown.asked === asked ? kept : (fresh ?? kept);
  const current = new Map((fresh?.events ?? []).map((event) => [keyOf(event), event]));
  const events = (page?.events ?? []).map((event) => current.get(keyOf(event)) ?? event);
  const known = new Set(events.map(keyOf));
  const added = [...current.keys()].filter((key) => !known.has(key)).length;
  const missing = fresh ? events.length - (current.size - added) : 0;
  several.current ||= events.some(({ company }) => company !== 'default');
  const companies = several.current || Boolean(filter.company);
  const next = page?.next ?? null;

  return html`
    <h1 tabindex="-1">Events</h1>
    <${Redrives} acted=${acted} />
    <${Filters}
      params=${params}
      handlers=${handlers}
      companies=${companies}
      types=${[...new Set(events.map(({ eventType }) => eventType))]}
      onFilter=${(/** @type {Record<string, string>} */ given) => {
        location.hash = listLink(given);
      }}
    />
    ${!page && html`<${Waiting} error=${error} />`}
    ${page?.events.length === 0 && html`<${Nothing} filtered=${Object.keys(filter).length > 0} later=${Boolean(after)} more=${next !== null} />`}
    ${
      events.length > 0 &&
      html`<${Selection}
        events=${events}
        selected=${selected}
        onSelect=${setSelected}
        filter=${filter}
        more=${Boolean(next ?? after)}
        allMatching=${allMatching}
        onAllMatching=${setAllMatching}
        ask=${ask}
      />`
    }
    <div aria-live="polite" class="fresh">
      ${
        page &&
        (added > 0 || missing > 0) &&
        html`<button type="button" onClick=${show}>
          ${changed(added, missing, Boolean(after))}: show
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
    <${PageLinks}
      trail=${trail}
      after=${after}
      next=${next}
      nextText=${events.length < LIMIT ? `Search ${order === 'oldest' ? 'newer' : 'older'} events` : undefined}
      link=${(/** @type {string} */ cursor) => listLink({ ...filter, order, after: cursor })}
      csv=${csvAddress('events', query)}
      count=${events.length > 0 && onThisPage(events, filter)}
    />
  `;
}

/**
 * Reads a page with several requests if few events match.
 *
 * @param {Record<string, string | number>} query
 * @param {string} after
 * @param {AbortSignal} signal
 * @returns {Promise<EventPage>}
 */
async function readPage(query, after, signal) {
  const events = [];
  /** @type {string | null} */
  let next = after || null;
  let requests = 0;
  do {
    const part = { ...query, limit: LIMIT - events.length, ...(next !== null && { after: next }) };
    /** @type {EventPage} */
    const page = await get('events', part, signal);
    events.push(...page.events);
    next = page.next;
    requests += 1;
  } while (next !== null && events.length < LIMIT && requests < MAX_REQUESTS);
  return { events, next };
}

/**
 * @param {number} added
 * @param {number} missing
 * @param {boolean} later whether the page is not the first page
 */
function changed(added, missing, later) {
  // Each new event moves one event to the next page. If more events have disappeared, some of them do not match the
  // filter any more.
  if (later || missing > added) return 'The list has changed';
  return added >= LIMIT ? `${LIMIT} or more new events` : counted(added, 'new event');
}

/**
 * The number of events on the page and, if the filter selects deliveries, the number of matching deliveries, because
 * the overview counts deliveries.
 *
 * @param {readonly import('./api.js').StoredEvent[]} events
 * @param {Record<string, string>} filter
 */
function onThisPage(events, { state, handler }) {
  const text = `${counted(events.length, 'event')} on this page`;
  const all = events.flatMap(({ deliveries }) => deliveries);
  const matching = all.filter(
    (one) => (state ?? one.state) === one.state && (handler ?? one.handler) === one.handler,
  );
  if ((state === undefined && handler === undefined) || matching.length === 0) return text;
  return `${text}, with ${counted(matching.length, `${state ?? ''} delivery`.trim())}`;
}

/** @param {{ filtered: boolean, later: boolean, more: boolean }} props */
function Nothing({ filtered, later, more }) {
  if (more) {
    return html`<p class="empty">
      <strong>None of the events that were searched matches.</strong>
    </p>`;
  }
  if (filtered || later) {
    return html`<p class="empty">
      <strong>No event matches.</strong> <a href="#/events">Show all events</a>
    </p>`;
  }
  return html`<p class="empty">
    <strong>No event received yet.</strong> <a href="#/setup">Send a test webhook</a>: it then
    appears here.
  </p>`;
}
