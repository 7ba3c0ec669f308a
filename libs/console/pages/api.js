/**
 * The type of a value of the server after its conversion to JSON and back.
 *
 * @template T
 * @typedef {T extends Date ? string : T extends object ? { [K in keyof T]: Json<T[K]> } : T} Json
 */
/**
 * The responses of the API.
 *
 * @typedef {import('nestjs-payments').DeliveryState} State
 * @typedef {Json<import('nestjs-payments').StoredDelivery>} Delivery `history` is empty in a list
 * @typedef {Omit<Json<import('nestjs-payments').StoredEvent>, 'raw'> & { payload?: string | null }} StoredEvent `payload` is
 * missing in a list, and `repeats` is empty in a list
 * @typedef {Json<import('nestjs-payments').ActivityCounts>} Counts
 * @typedef {Json<import('nestjs-payments').CappedCount>} CappedCount
 * @typedef {Json<import('nestjs-payments').InboxStats>} Stats
 * @typedef {Json<import('nestjs-payments').HandlerPause>} Pause
 * @typedef {Json<import('nestjs-payments').FailureGroup>} FailureGroup
 * @typedef {Json<import('nestjs-payments').Failures>} Failures
 * @typedef {Json<import('../dist/console-inbox.js').ShownExpectation>} Expectation
 * @typedef {{ expectations: Expectation[], next: string | null }} ExpectationPage
 * @typedef {Json<import('../dist/console-payment.js').ConsolePayment>} Payment
 * @typedef {Json<import('../dist/console-overview.js').ConsoleMinute>} Minute
 * @typedef {Json<import('../dist/console-overview.js').ConsoleHandler>} Handler
 * @typedef {Json<import('../dist/console-process-reports.js').ConsoleArrivals>} Arrivals
 * @typedef {Json<import('../dist/console-process-reports.js').ConsoleService>} Service
 * @typedef {Json<Omit<import('nestjs-payments').InboxProcess, 'companies'>>} Process
 * @typedef {import('nestjs-payments').HandlerLoad} HandlerLoad
 * @typedef {{ processes: Process[], services: Service[] }} ProcessPage
 * @typedef {Json<import('nestjs-payments').RangeCounts>} RangeCounts
 * @typedef {Json<import('../dist/console-overview.js').InboxOverview> & { who: string | null, may: 'read' | 'act' }} Overview
 * @typedef {Json<import('nestjs-payments').StoredAuditEntry>} AuditEntry
 * @typedef {Json<import('nestjs-payments').SetupCheck>} SetupCheck
 * @typedef {Json<import('nestjs-payments').RedriveJob>} RedriveJob
 * @typedef {{ entries: AuditEntry[], comparedFrom: string | null }} Audit
 * @typedef {{ events: StoredEvent[], next: string | null }} EventPage
 * @typedef {{ events: number, deliveries: number, polls?: number, closed?: number, event?: { company: string, id: string } }} SelectionResult
 */

const TIMEOUT_MS = 15_000;

/** The error of a request that failed. `status` is 0 if the server was not reached. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  /** Whether the server is not reachable or failed. */
  get unavailable() {
    return this.status === 0 || this.status >= 500;
  }

  /** Whether the user is not signed in or not allowed. Another request would only open the password dialog again. */
  get unauthorized() {
    return this.status === 401 || this.status === 403;
  }
}

/**
 * Builds an address from the page's own address, without credentials. A browser does not fetch addresses with
 * credentials, and the page may have been opened as `https://name:password@host/`.
 *
 * @param {string} path
 */
function address(path) {
  return `${location.origin}${location.pathname.replace(/\/?$/, '/')}api/${path}`;
}

/**
 * @param {string} path
 * @param {RequestInit} request
 * @returns {Promise<any>}
 */
async function call(path, request) {
  const signals = [AbortSignal.timeout(TIMEOUT_MS), ...(request.signal ? [request.signal] : [])];
  /** @type {Response} */
  let response;
  /** @type {any} */
  let body;
  try {
    response = await fetch(address(path), { ...request, signal: AbortSignal.any(signals) });
    body = await response.json().catch((error) => {
      if (error instanceof SyntaxError) return undefined;
      throw error;
    });
  } catch (error) {
    const late = /** @type {{ name?: string }} */ (error).name === 'TimeoutError';
    throw new ApiError(
      0,
      late
        ? `The server did not respond within ${TIMEOUT_MS / 1000} s.`
        : 'The server is not reachable.',
    );
  }
  if (response.ok && body !== undefined) return body;
  const message =
    typeof body?.error === 'string' ? body.error : `The server responded with ${response.status}.`;
  throw new ApiError(response.ok ? 502 : response.status, message);
}

/**
 * @param {string} path
 * @param {Record<string, string | number>} [query]
 * @param {AbortSignal} [signal]
 */
export function get(path, query = {}, signal) {
  const params = new URLSearchParams(
    Object.entries(query).map(([name, value]) => [name, String(value)]),
  );
  return call(params.size ? `${path}?${params}` : path, signal ? { signal } : {});
}

/**
 * Returns the address of a list as a CSV file.
 *
 * @param {'events' | 'expectations' | 'failures'} list
 * @param {Record<string, string | number>} [query] the filter of the list
 */
export function csvAddress(list, query = {}) {
  const params = new URLSearchParams(/** @type {Record<string, string>} */ (query));
  for (const name of ['limit', 'after']) params.delete(name);
  return address(params.size ? `csv/${list}?${params}` : `csv/${list}`);
}

/**
 * @param {string} path
 * @param {unknown} body
 */
export function post(path, body) {
  const headers = { 'content-type': 'application/json', 'x-payments-console': '1' };
  return call(path, { method: 'POST', headers, body: JSON.stringify(body) });
}
