import { Get, Inject, Injectable, Post, Req, Res } from '@nestjs/common';
import type { StoredEvent } from 'nestjs-payments';
import { AuditTrail } from './audit-trail.js';
import { CONSOLE_ACTIONS, exported } from './audit-words.js';
import { ConsoleActions } from './console-actions.js';
import { badRequest, ConsoleException } from './console-exception.filter.js';
import { ConsoleInbox } from './console-inbox.js';
import { findPayment } from './console-payment.js';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { ConsoleOverview } from './console-overview.js';
import { servicesOf } from './console-process-reports.js';
import { jsonBodyOf, queryOf } from './console-request.js';
import type { ConsoleRequest } from './console-request.js';
import { CsvExport } from './csv-export.js';
import { operatorName, permissionOf } from './operator-name.js';
import {
  AuditQueryDto,
  EventIdDto,
  EventListQueryDto,
  ExpectationListQueryDto,
  OverviewQueryDto,
  PaymentDto,
} from './request-dtos.js';
import { validQuery } from './request-validation.js';
import { ResponseWriter } from './response-writer.js';

/**
 * The API that the console page calls. The controller reads and validates requests itself, and writes responses through
 * the HTTP adapter. Therefore the application's pipes, interceptors and filters change neither the requests nor the
 * responses.
 */
@Injectable()
export class ConsoleApi {
  constructor(
    @Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions,
    private readonly inbox: ConsoleInbox,
    private readonly overview: ConsoleOverview,
    private readonly actions: ConsoleActions,
    private readonly responses: ResponseWriter,
    private readonly audit: AuditTrail,
    private readonly csv: CsvExport,
  ) {}

  @Get('api/overview')
  async showOverview(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    const who = await this.#operatorOf(request);
    const { minutes } = await validQuery(OverviewQueryDto, queryOf(request));
    const may = await permissionOf(request, this.options.may);
    const { now, ...rest } = await this.overview.show(minutes);
    this.responses.json(response, 200, { now, who, may, ...rest });
  }

  @Get('api/processes')
  async listProcesses(@Res() response: unknown): Promise<void> {
    const processes = await this.overview.processes();
    // Leave out the ids of the webhook secrets: JSON omits undefined fields.
    const shown = processes.map((process) => ({ ...process, companies: undefined }));
    this.responses.json(response, 200, { processes: shown, services: servicesOf(processes) });
  }

  @Get('api/events')
  async listEvents(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    const query = await validQuery(EventListQueryDto, queryOf(request));
    const page = await this.inbox.call((inbox) => inbox.list(query.toQuery())).catch(asBadCursor);
    // Leave out the bodies: JSON omits undefined fields.
    const events = page.events.map((event) => ({ ...event, raw: undefined }));
    this.responses.json(response, 200, { events, next: page.next });
  }

  /**
   * Responds with one event. The query contains the company and the id, because browsers remove `..` from a path, and
   * some proxies decode `%2F` in a path.
   */
  @Get('api/event')
  async showEvent(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    const { company, id } = await validQuery(EventIdDto, queryOf(request));
    const who = await this.#operatorOf(request);
    const event = await this.inbox.call((inbox) => inbox.get(id, company));
    if (event === undefined) {
      throw new ConsoleException(
        404,
        'The inbox has no event with this id. The event may have been deleted.',
      );
    }
    await this.audit.viewed(who, { company, id });
    this.responses.json(response, 200, withPayload(event));
  }

  /** Responds with all that the inbox knows about one payment, without the bodies of its events. */
  @Get('api/payment')
  async showPayment(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    const { company, payment } = await validQuery(PaymentDto, queryOf(request));
    const found = await findPayment(this.inbox, company, payment);
    if (found.events.length === 0 && found.expectations.length === 0) {
      throw new ConsoleException(
        404,
        'The inbox has no event and no expectation of this payment. They may have been deleted.',
      );
    }
    this.responses.json(response, 200, found);
  }

  @Get('api/failures')
  async listFailures(@Res() response: unknown): Promise<void> {
    this.responses.json(response, 200, await this.overview.failures());
  }

  @Get('api/redrives')
  async listRedrives(@Res() response: unknown): Promise<void> {
    this.responses.json(response, 200, { redrives: await this.overview.redrives() });
  }

  @Get('api/expectations')
  async listExpectations(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    const query = await validQuery(ExpectationListQueryDto, queryOf(request));
    const page = await this.inbox.listExpectations(query.toQuery()).catch(asBadCursor);
    this.responses.json(response, 200, page);
  }

  /** Responds with a list as a CSV file. The audit trail contains an entry for each export. */
  @Get('api/csv/:list')
  async exportList(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    const who = await this.#operatorOf(request);
    const list = request.params?.['list'] ?? '';
    const { text, rows, more, filter } = await this.csv
      .file(list, queryOf(request))
      .catch(asBadCursor);
    await this.audit.performed(who, exported(list, rows, filter), true);
    const day = new Date(this.options.runtime.now()).toISOString().slice(0, 10);
    const name = `${list}-${day}${more ? '-incomplete' : ''}.csv`;
    const headers = {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${name}"`,
    };
    this.responses.text(response, 200, headers, text);
  }

  @Get('api/audit')
  async showAudit(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    const query = await validQuery(AuditQueryDto, queryOf(request));
    this.responses.json(response, 200, await this.audit.latest(query));
  }

  @Post('api/:action')
  async act(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    const action = CONSOLE_ACTIONS.find((name) => name === request.params?.['action']);
    if (action === undefined) {
      throw new ConsoleException(
        404,
        `There is no such action. The actions are ${CONSOLE_ACTIONS.join(', ')}.`,
      );
    }
    const who = await this.#operatorOf(request);
    const may = await permissionOf(request, this.options.may);
    const result = await this.actions.perform(action, { who, may }, await jsonBodyOf(request));
    this.responses.json(response, 200, result);
  }

  #operatorOf(request: ConsoleRequest): Promise<string | null> {
    return operatorName(request, this.options.who);
  }
}

/** Returns the event with its body as text. Bytes that are not UTF-8 become U+FFFD. */
function withPayload({ raw, deliveries, ...event }: StoredEvent): object {
  return { ...event, payload: raw?.toString('utf8') ?? null, deliveries };
}

/**
 * Throws an exception with the status 400 for a TypeError, which a store throws if a cursor is not valid. Only the
 * store can check a cursor, because each store has its own form of cursors. Rethrows all other errors.
 */
function asBadCursor(error: unknown): never {
  if (!(error instanceof TypeError)) throw error;
  throw badRequest(
    '"after" must be the value of "next" in the previous page. Start again from the first page.',
  );
}
