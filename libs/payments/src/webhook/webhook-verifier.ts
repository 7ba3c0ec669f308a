import type { IncomingHttpHeaders } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import { COMPANIES } from '../companies/company.js';
import type { Companies, ResolvedCompany } from '../companies/company.js';
import { ModuleLogger, ThrottledLog } from '../errors/module-log.js';
import { PaymentsError } from '../errors/payments-error.js';
import { parseEnvelope } from '../events/payment-event.js';
import { VerifiedEvent } from '../inbox/receive/event-receiver.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { NO_OBSERVERS, Observers } from '../telemetry/observers.js';
import {
  bytesReadBefore,
  companyParam,
  companyUnknown,
  headerText,
  PendingRequests,
  requireCompanyId,
} from './admission.js';
import type { PendingRequest } from './admission.js';
import { parseSignatures, requireMatch, SIGNATURE_HEADER } from './signature.js';
import { WEBHOOK_OPTIONS } from './webhook-options.js';
import type { ResolvedWebhookOptions } from './webhook-options.js';
import { RejectionLog } from './webhook-rejection.js';

/**
 * The properties of a request of Express or Fastify that the module reads. Fastify's request has Node's request as
 * `raw`.
 */
export interface WebhookRequest {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly params?: unknown;
  readonly raw?: unknown;
  rawBody?: unknown;
  body?: unknown;
}

/** Verifies webhook requests: it checks the signature of the bytes first, and then parses them. */
@Injectable()
export class WebhookVerifier {
  readonly #log: ThrottledLog;

  constructor(
    @Inject(COMPANIES) private readonly companies: Companies,
    private readonly pending: PendingRequests,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly rejections: RejectionLog,
    @Inject(WEBHOOK_OPTIONS) private readonly options: ResolvedWebhookOptions,
    private readonly observers: Observers = NO_OBSERVERS,
  ) {
    this.#log = new ThrottledLog(new ModuleLogger('PaymentWebhook'), runtime);
  }

  /**
   * Returns the event of a webhook request. The path parameter `company` names the company. Without this parameter, the
   * company is `default`.
   *
   * @throws PaymentsError with the code of the rejection, which the method also logs. If the connection closes, the
   *   error of the connection.
   */
  async verify(request: WebhookRequest): Promise<VerifiedEvent> {
    const pending = this.pending.attachedTo(request) ?? this.pending.attachedTo(request.raw);
    let companyId: string | undefined;
    try {
      const bytes = pending ? pending.body : bytesReadBefore(request, this.options.bodyLimitBytes);
      if (bytes === undefined) throw rawBodyUnavailable();
      const { signatures, since } = pending ?? this.#withoutAdmission(request);
      const id = requireCompanyId(companyParam(request.params));
      const company = this.companies.known(id) ?? (await this.#lookUp(id, since, pending));
      companyId = company.id;
      const { signingKeys } = company;
      const secret = requireMatch(bytes, signatures, signingKeys);
      this.companies.verified(companyId);
      this.observers.facts.verified(companyId, signingKeys, secret);
      return this.#parse(request, company, bytes, since);
    } catch (error) {
      this.rejections.logRejection(error, companyId);
      throw error;
    } finally {
      pending?.release();
    }
  }

  /**
   * Returns what {@link Admission} would have returned for a request. Used for a request without admission: if
   * `WebhookGuard` is a global guard, the module does not know the route of the request.
   */
  #withoutAdmission({ headers }: WebhookRequest): Pick<PendingRequest, 'signatures' | 'since'> {
    const signatures = parseSignatures(headerText(headers[SIGNATURE_HEADER]));
    return { signatures, since: this.runtime.monotonic() };
  }

  async #lookUp(id: string, arrivedAt: number, pending?: PendingRequest): Promise<ResolvedCompany> {
    const lookup = this.companies.findForWebhook(id, arrivedAt);
    const company = await (pending ? pending.until(lookup) : lookup);
    if (company === undefined) throw companyUnknown();
    return company;
  }

  #parse(
    { headers }: WebhookRequest,
    company: ResolvedCompany,
    bytes: Buffer,
    arrivedAt: number,
  ): VerifiedEvent {
    const event = parseEnvelope(bytes);
    const unsignedType = headerText(headers['x-webhook-event']);
    if (unsignedType !== undefined && unsignedType !== event.eventType) {
      this.#log.warn(
        event.eventType,
        `Event ${event.id} (company ${company.id}) has the type ${event.eventType} in its signed body, but another ` +
          'type in its unsigned header X-Webhook-Event. The type in the body is used.',
        { company: company.id, id: event.id },
      );
    }
    return new VerifiedEvent(company.id, event, bytes, arrivedAt, storedHeaders(headers));
  }
}

function rawBodyUnavailable(): PaymentsError {
  return new PaymentsError(
    'raw_body_unavailable',
    'The raw bytes of the body were not available to check the signature; the log contains the cause.',
  );
}

/**
 * The headers that are stored with an event: the documented headers, except for the signature, and the headers that
 * identify the request in a log or a trace. The list is explicit, so that no credentials and no IP addresses of people
 * are stored.
 */
const STORED_HEADERS = [
  'content-type',
  'content-length',
  'user-agent',
  'x-webhook-event',
  'x-request-id',
  'traceparent',
] as const;

const MAX_HEADER_LENGTH = 256;

/**
 * Returns the headers to store, by lower-case name, without control characters and cut at 256 characters. A header
 * whose value has no text form is left out, so that no header can make a verified webhook request fail.
 */
export function storedHeaders(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const stored: Record<string, string> = {};
  for (const name of STORED_HEADERS) {
    const text = headers[name] === undefined ? '' : headerText(headers[name]);
    if (!text) continue;
    const cut = text.replace(/\p{Cc}+/gu, '').slice(0, MAX_HEADER_LENGTH);
    // The cut may split a surrogate pair, which databases reject.
    if (cut !== '') stored[name] = cut.toWellFormed();
  }
  return stored;
}
