import type { IncomingHttpHeaders } from 'node:http';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { COMPANIES } from '../companies/companies.js';
import type { Companies } from '../companies/companies.js';
import type { ResolvedCompany } from '../companies/company.js';
import { ThrottledLog } from '../errors/throttled-log.js';
import { parseEnvelope } from '../events/payment-event.js';
import { VerifiedEvent } from '../inbox/receive/verified-event.js';
import { PaymentsError } from '../errors/payments-error.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { companyOf, companyUnknown, requireCompanyId } from './admission.js';
import { headerText, keptHeaders } from './request-headers.js';
import { PendingRequests } from './pending-requests.js';
import type { PendingRequest } from './pending-requests.js';
import { RejectionLog } from './rejection-log.js';
import { givenBytes } from './raw-body.js';
import { parseSignatures, requireMatch, SIGNATURE_HEADER } from './signature.js';
import { WEBHOOK_OPTIONS } from './webhook-options.js';
import type { ResolvedWebhookOptions } from './webhook-options.js';

/** What an HTTP request of either adapter has in common. Fastify keeps Node's request under `raw`. */
export interface WebhookRequest {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly params?: unknown;
  readonly raw?: unknown;
  rawBody?: unknown;
  body?: unknown;
}

/** Verifies requests: bytes first, then what they say. */
@Injectable()
export class WebhookVerifier {
  readonly #log: ThrottledLog;

  constructor(
    @Inject(COMPANIES) private readonly companies: Companies,
    private readonly pending: PendingRequests,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly rejections: RejectionLog,
    @Inject(WEBHOOK_OPTIONS) private readonly options: ResolvedWebhookOptions,
  ) {
    this.#log = new ThrottledLog(new Logger('PaymentWebhook'), runtime);
  }

  /**
   * The delivery a request carries. The company is the path parameter `company`, or `default`.
   *
   * @throws PaymentsError: each code of `answerError()`.
   */
  async verify(request: WebhookRequest): Promise<VerifiedEvent> {
    const pending = this.pending.of(request) ?? this.pending.of(request.raw);
    let known: string | undefined;
    try {
      const bytes = pending ? pending.body : givenBytes(request, this.options.bodyLimitBytes);
      if (bytes === undefined) throw rawBodyUnavailable();
      const { signatures, since } = pending ?? this.#unseen(request);
      const id = requireCompanyId(companyOf(request.params));
      const company = this.companies.known(id) ?? (await this.#company(id, since, pending));
      known = company.id;
      requireMatch(bytes, signatures, company.signingKeys);
      this.companies.verified(known);
      return this.#read(request, company, bytes, since);
    } catch (error) {
      this.rejections.note(error, known);
      throw error;
    } finally {
      pending?.release();
    }
  }

  /** What admission finds out, of a request that did not pass it: `WebhookGuard` is a global guard. */
  #unseen({ headers }: WebhookRequest): Pick<PendingRequest, 'signatures' | 'since'> {
    const signatures = parseSignatures(headerText(headers[SIGNATURE_HEADER]));
    return { signatures, since: this.runtime.monotonic() };
  }

  async #company(
    id: string,
    arrivedAt: number,
    pending?: PendingRequest,
  ): Promise<ResolvedCompany> {
    const finding = this.companies.findForDelivery(id, arrivedAt);
    const company = await (pending ? pending.until(finding) : finding);
    if (company === undefined) throw companyUnknown();
    return company;
  }

  #read(
    request: WebhookRequest,
    company: ResolvedCompany,
    bytes: Buffer,
    arrivedAt: number,
  ): VerifiedEvent {
    const event = parseEnvelope(bytes);
    const claimed = headerText(request.headers['x-webhook-event']);
    if (claimed !== undefined && claimed !== event.eventType) {
      this.#log.warn(
        event.eventType,
        `Event ${event.id} (company ${company.id}) is signed as ${event.eventType}, but its unsigned X-Webhook-Event ` +
          'header says otherwise. The signed type is used.',
      );
    }
    return new VerifiedEvent(company.id, event, bytes, arrivedAt, keptHeaders(request.headers));
  }
}

function rawBodyUnavailable(): PaymentsError {
  return new PaymentsError(
    'raw_body_unavailable',
    'The raw bytes of the delivery were not available to check its signature; the log says why.',
  );
}
