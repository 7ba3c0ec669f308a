import { Get, Inject, Post, Req, Res } from '@nestjs/common';
import type { StoredEvent } from '../inbox/inbox-store.js';
import { ConsoleActions } from './console-actions.js';
import type { ConsoleAction } from './console-actions.js';
import { ConsoleAnswers } from './console-answers.js';
import { Data } from './console-gate.js';
import { ConsoleInbox } from './console-inbox.js';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { ConsoleOverview } from './console-overview.js';
import { readList, readMinutes, readNamedEvent } from './console-queries.js';
import { badRequest, ConsoleRefusal } from './console-refusal.js';
import type { ConsoleRequest } from './console-request.js';
import { operatorName } from './operator-name.js';
import { PayloadAudit } from './payload-audit.js';
import { jsonBody } from './request-body.js';

/**
 * What the page asks for and asks to be done. It reads requests itself and answers through the adapter, so that
 * the application's pipes, interceptors and filters, which are made for its own routes, change neither.
 */
export class ConsoleApi {
  constructor(
    @Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions,
    @Inject(ConsoleInbox) private readonly inbox: ConsoleInbox,
    @Inject(ConsoleOverview) private readonly overview: ConsoleOverview,
    @Inject(ConsoleActions) private readonly actions: ConsoleActions,
    @Inject(ConsoleAnswers) private readonly answers: ConsoleAnswers,
    @Inject(PayloadAudit) private readonly audit: PayloadAudit,
  ) {}

  @Get('api/overview')
  @Data()
  async showOverview(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    const who = await this.#who(request);
    const { now, ...rest } = await this.overview.show(readMinutes(request));
    this.answers.json(response, 200, { now, who, ...rest });
  }

  @Get('api/events')
  @Data()
  async listEvents(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    const query = readList(request);
    const page = await this.inbox.ask((inbox) => inbox.list(query)).catch(asWrongCursor);
    // A list comes without bodies, and JSON without what is undefined.
    const events = page.events.map((event) => ({ ...event, raw: undefined }));
    this.answers.json(response, 200, { events, next: page.next });
  }

  /** Company and id stand in the query: in a path, a browser takes `..` out, and proxies what stands for a slash. */
  @Get('api/event')
  @Data()
  async showEvent(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    const { company, id } = readNamedEvent(request);
    const who = await this.#who(request);
    const event = await this.inbox.ask((inbox) => inbox.get(id, company));
    if (event === undefined) {
      throw new ConsoleRefusal(404, 'No such event is stored; it may be forgotten by now.');
    }
    this.audit.viewed(who, { company, id });
    this.answers.json(response, 200, withPayload(event));
  }

  @Post('api/redrive')
  @Data()
  async redrive(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    await this.#act('redrive', request, response);
  }

  @Post('api/skip')
  @Data()
  async skip(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    await this.#act('skip', request, response);
  }

  @Post('api/pause')
  @Data()
  async pause(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    await this.#act('pause', request, response);
  }

  @Post('api/resume')
  @Data()
  async resume(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    await this.#act('resume', request, response);
  }

  @Post('api/forget')
  @Data()
  async forget(@Req() request: ConsoleRequest, @Res() response: unknown): Promise<void> {
    await this.#act('forget', request, response);
  }

  async #act(action: ConsoleAction, request: ConsoleRequest, response: unknown): Promise<void> {
    const who = await this.#who(request);
    const result = await this.actions.perform(action, who, await jsonBody(request));
    this.answers.json(response, 200, result);
  }

  #who(request: ConsoleRequest): Promise<string | null> {
    return operatorName(request, this.options.who);
  }
}

/** The body as text, whatever it is: bytes that are no UTF-8 show as U+FFFD. */
function withPayload({ raw, deliveries, ...event }: StoredEvent): object {
  return { ...event, payload: raw?.toString('utf8') ?? null, deliveries };
}

/** Each store has cursors of its own form, and calls another's a mistake. */
function asWrongCursor(error: unknown): never {
  if (!(error instanceof TypeError)) throw error;
  throw badRequest('"after" must be "next" of the page before. Start again from the first page.');
}
