import type { IncomingHttpHeaders } from 'node:http';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { COMPANIES } from '../companies/companies.js';
import type { Companies } from '../companies/companies.js';
import { DEFAULT_COMPANY } from '../companies/company.js';
import type { ResolvedCompany } from '../companies/company.js';
import { isCompanyId } from '../companies/company.options.js';
import { parseEnvelope } from '../events/envelope.js';
import { VerifiedDelivery } from '../inbox/verified.delivery.js';
import { PaymentsError } from '../payments.errors.js';
import { PAYMENTS_RUNTIME } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { headerText } from './header-text.js';
import { keptHeaders } from './kept-headers.js';
import { RefusalLog } from './refusal-log.js';
import { answerError } from './webhook.answer.js';
import { givenBytes, RawBodies, RawBody } from './raw-bodies.js';
import { parseSignatures, requireMatch, SIGNATURE_HEADER } from './signature.js';
import type { ResolvedWebhookOptions } from './webhook.options.js';
import { WEBHOOK_OPTIONS } from './webhook.tokens.js';

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
  readonly #logger = new Logger('PaymentWebhook');

  constructor(
    @Inject(COMPANIES) private readonly companies: Companies,
    @Inject(RawBodies) private readonly rawBodies: RawBodies,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    @Inject(RefusalLog) private readonly refusals: RefusalLog,
    @Inject(WEBHOOK_OPTIONS) private readonly options: ResolvedWebhookOptions,
  ) {}

  /**
   * The delivery a request carries. The company is the path parameter `company`, or `default`.
   *
   * @throws PaymentsError: each code of `answerError()`.
   */
  async verify(request: WebhookRequest): Promise<VerifiedDelivery> {
    let known: string | undefined;
    try {
      const { bytes, arrivedAt } = this.#rawBody(request);
      // Before the company is looked up: a stranger who does not even pretend costs the application no query.
      const signatures = parseSignatures(headerText(request.headers[SIGNATURE_HEADER]));
      const id = companyId(request.params);
      const company = this.companies.known(id) ?? (await this.#company(id, arrivedAt));
      known = company.id;
      requireMatch(bytes, signatures, company.signingKeys);
      this.companies.verified(known);
      return this.#read(request, company, bytes, arrivedAt);
    } catch (error) {
      // 5xx errors are already logged elsewhere.
      if (answerError(error).status < 500) this.refusals.note(error, known);
      throw error;
    }
  }

  async #company(id: string, arrivedAt: number): Promise<ResolvedCompany> {
    const company = isCompanyId(id)
      ? await this.companies.findForDelivery(id, arrivedAt)
      : undefined;
    if (company !== undefined) return company;
    throw new PaymentsError(
      'company_unknown',
      'The path names no company this application receives deliveries for.',
    );
  }

  #read(
    request: WebhookRequest,
    company: ResolvedCompany,
    bytes: Buffer,
    arrivedAt: number,
  ): VerifiedDelivery {
    const event = parseEnvelope(bytes);
    const claimed = headerText(request.headers['x-webhook-event']);
    if (claimed !== undefined && claimed !== event.eventType) {
      this.#logger.warn(
        `Event ${event.id} (company ${company.id}) is signed as ${event.eventType}, but its unsigned X-Webhook-Event ` +
          'header says otherwise. The signed type is used.',
      );
    }
    return new VerifiedDelivery(company.id, event, bytes, arrivedAt, keptHeaders(request.headers));
  }

  #rawBody(request: WebhookRequest): RawBody {
    const read = this.rawBodies.get(request) ?? this.rawBodies.get(request.raw);
    if (read) return read;
    // Something else read the body first.
    const given = read === undefined ? givenBytes(request, this.options.bodyLimitBytes) : undefined;
    if (given !== undefined) return new RawBody(given, this.runtime.monotonic());
    this.#logger.error(
      'The raw bytes of a delivery are gone, so its signature cannot be checked: something read the body before ' +
        'this module could. Mount it later (a body parser given to the HTTP adapter before Nest had it?), or have it ' +
        'leave this route alone; where WebhookGuard is a global guard, put it on the route with @UseGuards instead.',
    );
    throw new PaymentsError(
      'raw_body_unavailable',
      'The raw bytes of the delivery were not available to check its signature; the log says why.',
    );
  }
}

function companyId(params: unknown): string {
  const company = (params as Record<string, unknown> | undefined)?.['company'] ?? DEFAULT_COMPANY;
  // A wildcard of the application's own route is a list: no company's id.
  return typeof company === 'string' ? company : '';
}
