import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { DEFAULT_COMPANY } from '../companies/company.js';
import { isCompanyId } from '../companies/resolve-company.js';
import { PaymentsError } from '../errors/payments-error.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { checkFailed, runCheck } from './admission-check.js';
import { headerText } from './request-headers.js';
import { PendingRequests, RequestClosed, webhookBusy } from './pending-requests.js';
import type { PendingRequest } from './pending-requests.js';
import { givenBytes, readRawBody, requireFittingLength, requirePlainJson } from './raw-body.js';
import { parseSignatures, SIGNATURE_HEADER } from './signature.js';
import { WEBHOOK_OPTIONS } from './webhook-options.js';
import type { ResolvedWebhookOptions } from './webhook-options.js';

/** One for all requests: creating an error captures a stack, and every request ends. */
const CLOSED = new RequestClosed();

/** A POST to a route that receives deliveries, as both adapters can describe it. */
export interface ArrivingRequest {
  readonly headers: IncomingHttpHeaders;
  readonly url?: string | undefined;
  /** A request that a serverless adapter made may have none. */
  readonly socket?: { readonly remoteAddress?: string | undefined } | null;
  /** Company in the path; anything that is no company's id is refused. */
  readonly company: unknown;
  readonly body: Readable;
  /** What something else has left of a body that it read. */
  readonly given: { readonly rawBody?: unknown; readonly body?: unknown };
  /** The request of Express or Fastify. */
  readonly request: object;
  /** Emits `close` when the request is over, however it ends. */
  readonly response: { on(event: 'close', listener: () => void): unknown };
}

/**
 * The first stage of a delivery, in front of the signature:
 *
 * 1. form of the request: content type, content encoding, signature header, `Content-Length`
 * 2. syntax of the company in the path
 * 3. the application's own check, `webhook.before`
 * 4. capacity: `webhook.maxPending`, `webhook.maxPendingBytes`
 * 5. the body, within `webhook.bodyTimeoutMs` and `webhook.bodyLimitBytes`
 *
 * A request is refused at the first step that it does not pass. Nothing of its body is read before step 5, except while
 * an asynchronous `webhook.before` works: then the bytes that arrive are read within the limits of steps 4 and 5.
 */
@Injectable()
export class Admission {
  constructor(
    private readonly pending: PendingRequests,
    @Inject(WEBHOOK_OPTIONS) private readonly options: ResolvedWebhookOptions,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
  ) {}

  /**
   * Resolves with the request, whose body was read. It is pending until the caller releases it or its response closes.
   *
   * @throws PaymentsError with the code of the refusal; or the error of the connection, if it closes.
   */
  async admit(arriving: ArrivingRequest): Promise<PendingRequest> {
    const { headers } = arriving;
    requirePlainJson(headers);
    const signatures = parseSignatures(headerText(headers[SIGNATURE_HEADER]));
    requireFittingLength(headers, this.options.bodyLimitBytes);
    const check = this.#check(arriving, requireCompanyId(arriving.company));
    // The request may be refused before the check answers; nothing would handle its rejection then.
    check?.catch(() => {});
    let checking = check !== undefined;
    const pending = this.pending.add(signatures);
    const { bodyTimeoutMs } = this.options;
    const cancel = this.runtime.schedule(bodyTimeoutMs, () =>
      pending.refuse(
        checking
          ? checkFailed(`did not answer within ${bodyTimeoutMs} ms`)
          : bodyTimeout(bodyTimeoutMs),
      ),
    );
    // Something else may answer the request, or the sender close the connection.
    arriving.response.on('close', () => pending.refuse(CLOSED));
    try {
      const reading = this.#read(arriving, pending);
      // What the sender has sent meanwhile is read within the same limits. Node.js would keep it as a list of chunks.
      if (check) {
        const checked = pending.until(check).then(() => void (checking = false));
        await Promise.all([checked, reading]);
      }
      pending.body = await reading;
      return pending;
    } catch (error) {
      pending.refuse(error);
      throw error;
    } finally {
      cancel();
    }
  }

  #check(arriving: ArrivingRequest, company: string): Promise<void> | undefined {
    const { before } = this.options;
    if (!before) return undefined;
    const { url = '', headers, socket, request } = arriving;
    return runCheck(before, { company, url, headers, address: socket?.remoteAddress, request });
  }

  async #read(
    { body, given }: ArrivingRequest,
    pending: PendingRequest,
  ): Promise<Buffer | undefined> {
    const { bodyLimitBytes } = this.options;
    // Something else has read it, or there is no stream.
    if (!body.readableDidRead && typeof body.on === 'function') {
      return readRawBody(body, bodyLimitBytes, pending);
    }
    const bytes = givenBytes(given, bodyLimitBytes);
    if (bytes !== undefined && !pending.hold(bytes.byteLength)) throw webhookBusy();
    return bytes;
  }
}

function bodyTimeout(ms: number): PaymentsError {
  return new PaymentsError('body_timeout', `The body did not arrive within ${ms} ms.`);
}

/** The company in the parameters of a route, `default` if there is none. It may be anything. */
export function companyOf(params: unknown): unknown {
  return (params as Record<string, unknown> | null | undefined)?.['company'] ?? DEFAULT_COMPANY;
}

/**
 * The id, if it can be one.
 *
 * @throws PaymentsError `company_unknown`
 */
export function requireCompanyId(id: unknown): string {
  // A wildcard of the application's own route is a list.
  if (!isCompanyId(id)) throw companyUnknown();
  return id;
}

/** The error for a path that names no company of this application. */
export function companyUnknown(): PaymentsError {
  return new PaymentsError(
    'company_unknown',
    'The path names no company this application receives deliveries for.',
  );
}
