/**
 * @typedef {'pending' | 'running' | 'done' | 'dead' | 'skipped'} State
 *
 * @typedef {object} Attempt
 * @property {number} attempt
 * @property {string} startedAt
 * @property {string} endedAt
 * @property {'done' | 'failed' | 'lost'} outcome
 * @property {string | null} error
 *
 * @typedef {object} Delivery
 * @property {string} handler
 * @property {State} state
 * @property {number} attempts
 * @property {string | null} lastError
 * @property {string | null} dueAt
 * @property {string | null} finishedAt
 * @property {Attempt[]} history empty in a list
 *
 * @typedef {object} StoredEvent
 * @property {string} company
 * @property {string} id
 * @property {string} eventType
 * @property {'webhook' | 'poll' | 'overdue'} source
 * @property {string} occurredAt
 * @property {string | null} orderingKey the transaction id
 * @property {string | null} reference
 * @property {string | null} amount
 * @property {string | null} currency
 * @property {string} receivedAt
 * @property {Record<string, string>} headers
 * @property {string | null} [payload] of one event; not in a list
 * @property {string} [bodyError] why the stored body could not be decoded; `payload` is `null` then
 * @property {boolean} stale
 * @property {{ id: string, receivedAt: string }[]} repeats empty in a list
 * @property {Delivery[]} deliveries
 *
 * @typedef {object} Counts
 * @property {number} received
 * @property {number} done
 * @property {number} failed
 * @property {number} dead
 * @property {number | null} p50Ms
 * @property {number | null} p95Ms
 *
 * @typedef {Counts & { startsAt: string }} Minute a closed minute
 *
 * @typedef {object} CappedCount
 * @property {number} count
 * @property {boolean} more whether there are more than `count`
 *
 * @typedef {object} Handler
 * @property {string} name
 * @property {boolean} here whether the process that responds has the handler
 * @property {string | null} lastSeenAt when a live process last had the handler
 * @property {Counts} activity in the shown minutes
 *
 * @typedef {object} Stats
 * @property {(CappedCount & { handler: string, state: 'pending' | 'running' | 'dead' })[]} deliveries
 * @property {CappedCount} unhandled
 * @property {CappedCount} stale
 * @property {number | null} oldestPendingMs
 * @property {string[]} paused handler names, and `*` for all
 *
 * @typedef {object} FailureGroup deliveries to one handler that failed with the same error, up to ids in it
 * @property {string} handler
 * @property {string} error of the newest delivery
 * @property {'dead' | 'retrying'} state
 * @property {number} count
 * @property {string} oldestAt
 * @property {string} newestAt
 * @property {string} company
 * @property {string} eventId
 *
 * @typedef {{ groups: FailureGroup[], more: boolean }} Failures
 *
 * @typedef {object} NewestEvents when the newest event of each source was received
 * @property {string | null} webhook
 * @property {string | null} poll
 * @property {string | null} overdue
 * @property {number | null} usualGapMs between two webhook requests
 * @property {boolean} late whether the next webhook request is late
 *
 * @typedef {object} Overview
 * @property {string} now the server's clock
 * @property {string | null} who
 * @property {{ durable: boolean }} capabilities
 * @property {Handler[]} handlers
 * @property {Stats} stats
 * @property {{ waiting: CappedCount, overdueUnpaid: CappedCount, overdueUnknown: CappedCount } | null} expectations `null` without the option `reconcile`
 * @property {NewestEvents | null} newest
 * @property {Minute[]} activity closed minutes, oldest first
 * @property {string} completeFrom from when on `activity` counts every event
 *
 * @typedef {object} Expectation
 * @property {string} company
 * @property {string} reference
 * @property {string | null} transactionId
 * @property {'waiting' | 'fulfilled' | 'overdue' | 'cancelled'} state
 * @property {string} createdAt
 * @property {number} polls
 * @property {{ at: string, result: string, detail: string | null } | null} lastPoll
 * @property {string | null} nextPollAt
 * @property {{ at: string, by: string, eventId: string, eventType: string } | null} fulfilled
 * @property {string | null} contradiction
 *
 * @typedef {object} AuditEntry
 * @property {number} id
 * @property {string} at when the action ended
 * @property {string | null} who
 * @property {'redrive' | 'skip' | 'pause' | 'resume' | 'forget' | 'ask' | 'view'} action
 * @property {string} target what the operator selected
 * @property {{ company: string, id: string } | null} event of a view
 * @property {{ events?: number, deliveries?: number, polls?: number }} result
 * @property {string | null} error why the action was rejected or failed
 *
 * @typedef {{ since: string, entries: AuditEntry[] }} Audit
 * @typedef {{ expectations: Expectation[], next: string | null }} ExpectationPage
 * @typedef {{ events: StoredEvent[], next: string | null }} EventPage
 * @typedef {{ events: number, deliveries: number, polls?: number }} SelectionResult
 */

const TIMEOUT_MS = 15_000;

/** A request that failed: `status` is 0 if the server was not reached. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  /** The server is not reachable or failed. */
  get unavailable() {
    return this.status === 0 || this.status >= 500;
  }

  /** The user is not signed in or not allowed. Another request would only open the password dialog again. */
  get unauthorized() {
    return this.status === 401 || this.status === 403;
  }
}

/**
 * Builds an address from the page's own address, without credentials: a page opened as `https://name:password@host/` must not
 * fetch addresses that contain them.
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
 * @param {string} path
 * @param {unknown} body
 */
export function post(path, body) {
  const headers = { 'content-type': 'application/json', 'x-payments-console': '1' };
  return call(path, { method: 'POST', headers, body: JSON.stringify(body) });
}
