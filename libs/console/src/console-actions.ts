import { Injectable, Logger } from '@nestjs/common';
import type { EventFilter, PaymentInbox, SelectionResult } from 'nestjs-payments';
import { BulkSelection } from './bulk-selection.js';
import { badRequest, ConsoleException } from './console-exception.filter.js';
import { ConsoleInbox } from './console-inbox.js';
import { ConsoleOverview, handlersOf } from './console-overview.js';
import { printable } from './operator-name.js';
import { AskDto, HandlerDto, RedriveDto, SkipDto } from './request-dtos.js';
import { validBody } from './request-validation.js';

/** The actions that an operator can perform. */
export const CONSOLE_ACTIONS = ['redrive', 'skip', 'pause', 'resume', 'forget', 'ask'] as const;
export type ConsoleAction = (typeof CONSOLE_ACTIONS)[number];

/** A performed action: its description for the log, and its result. */
interface PerformedAction {
  readonly description: string;
  readonly result: Partial<SelectionResult> & { readonly polls?: number };
}

/** Performs the actions of operators, and logs each with the operator, the request and the result. */
@Injectable()
export class ConsoleActions {
  readonly #logger = new Logger('PaymentsConsole');

  constructor(
    private readonly inbox: ConsoleInbox,
    private readonly overview: ConsoleOverview,
  ) {}

  /**
   * @throws ConsoleException 400 if the body is not valid, 404 for `ask` without the option `reconcile`, 409 if a running
   *   process has the handler to forget, 503 if the inbox is not reachable.
   */
  async perform(action: ConsoleAction, who: string | null, body: unknown): Promise<object> {
    const line = `${JSON.stringify(who ?? 'unknown')}: ${action}`;
    try {
      const { description, result } = await this.#perform(action, body);
      this.#logger.log(printable(`${line} ${description}${countsOf(result)}`));
      return result;
    } catch (error) {
      const cause = error instanceof Error ? error.message : 'The error is not an Error.';
      this.#logger.warn(printable(`${line} was rejected or failed. ${cause}`));
      throw error;
    } finally {
      this.overview.invalidate();
    }
  }

  async #perform(action: ConsoleAction, body: unknown): Promise<PerformedAction> {
    if (action === 'redrive' || action === 'skip') {
      const request = await validBody(action === 'redrive' ? RedriveDto : SkipDto, body);
      requireOneSelection(request);
      await this.#requireKnown(request.handler);
      const result = await this.inbox.call((inbox) =>
        request instanceof RedriveDto ? redrive(inbox, request) : skip(inbox, request),
      );
      return { description: describe(request), result };
    }
    if (action === 'ask') {
      const { expectations } = await validBody(AskDto, body);
      const polls = await this.inbox.callExpectations((them) => them.askNow(expectations));
      return { description: `${expectations.length} selected expectations`, result: { polls } };
    }
    const { handler } = await validBody(HandlerDto, body);
    const description = handler === '*' ? 'all handlers' : `handler ${JSON.stringify(handler)}`;
    if (action === 'forget') return { description, result: await this.#forget(handler) };
    // A handler that was forgotten while it was paused can still be resumed.
    if (handler !== '*') await this.#requireKnown(handler, action === 'resume');
    await this.inbox.call((inbox) => inbox[action](handler));
    return { description, result: {} };
  }

  async #forget(handler: string): Promise<{ deliveries: number }> {
    if (handler === '*') throw badRequest('"handler" must be the name of one handler to forget.');
    await this.#requireKnown(handler, false);
    const deliveries = await this.inbox.call((inbox) => inbox.forgetHandler(handler));
    if (deliveries !== null) return { deliveries };
    throw new ConsoleException(
      409,
      `A running process has the handler ${JSON.stringify(handler)}. Stop the process, or remove the handler from it, first.`,
    );
  }

  /** @param stored whether to include handlers that only a stored delivery or a pause names */
  async #requireKnown(handler: string | undefined, stored = true): Promise<void> {
    if (handler === undefined) return;
    const names = await this.inbox.call(async (inbox) => {
      const known = stored ? await handlersOf(inbox, await inbox.stats()) : await inbox.handlers();
      return known.map(({ name }) => name);
    });
    if (names.includes(handler)) return;
    throw badRequest(
      `No handler is named ${JSON.stringify(handler)}. The handlers are: ${names.join(', ') || 'none'}.`,
    );
  }
}

/** Checks the rules about combinations of fields. @throws ConsoleException 400. */
function requireOneSelection(request: SkipDto | RedriveDto): void {
  const { events, filter, handler } = request;
  if ((events === undefined) === (filter === undefined)) {
    throw badRequest('The body must have either "events" or "filter".');
  }
  if (handler !== undefined && (filter?.handler ?? handler) !== handler) {
    throw badRequest('"handler" and "filter.handler" are different handlers: leave one out.');
  }
  if (
    events !== undefined &&
    request instanceof RedriveDto &&
    request.ratePerSecond !== undefined
  ) {
    throw badRequest('"ratePerSecond" is only for "filter": leave it out with "events".');
  }
}

async function redrive(inbox: PaymentInbox, request: RedriveDto): Promise<SelectionResult> {
  const { events, filter, handler, force, dryRun, ratePerSecond } = request;
  // The inbox adds deliveries only to the handlers that it knows.
  const handlers = (await inbox.handlers())
    .map(({ name }) => name)
    .filter((name) => (handler ?? name) === name);
  if (events !== undefined) {
    const selection = await BulkSelection.find(inbox, events, handler);
    // Without force, the inbox does not change done deliveries.
    for (const state of ['dead', 'skipped', 'pending', 'done'] as const) {
      await selection.inState(state, (query) => inbox.redrive({ ...query, force, dryRun }));
    }
    if (handlers.length > 0) {
      await selection.withoutDelivery((query) => inbox.redrive({ ...query, handlers, dryRun }));
    }
    return selection.result;
  }
  const query = {
    ...filter!.toFilter(),
    force,
    dryRun,
    ...(ratePerSecond !== undefined && { ratePerSecond }),
  };
  if (query.state !== 'unhandled' && query.state !== 'stale') {
    return inbox.redrive({ ...query, ...(handler !== undefined && { handler }) });
  }
  if (handlers.length === 0) return { events: 0, deliveries: 0 };
  return inbox.redrive({ ...query, handlers });
}

async function skip(inbox: PaymentInbox, request: SkipDto): Promise<SelectionResult> {
  const { events, filter, handler, dryRun } = request;
  if (events === undefined) {
    const query = { ...filter!.toFilter(), dryRun };
    return inbox.skip({ ...query, ...(handler !== undefined && { handler }) });
  }
  const selection = await BulkSelection.find(inbox, events, handler);
  for (const state of ['dead', 'pending'] as const) {
    await selection.inState(state, (query) => inbox.skip({ ...query, dryRun }));
  }
  return selection.result;
}

/** Describes a request for the log. */
function describe(request: SkipDto | RedriveDto): string {
  const { events, filter, handler, dryRun } = request;
  const { force = false, ratePerSecond } = request as Partial<RedriveDto>;
  return [
    events === undefined
      ? `the filter ${JSON.stringify(withoutSearch(filter!.toFilter()))}`
      : `${events.length} selected events`,
    ...(handler === undefined ? [] : [`handler ${JSON.stringify(handler)}`]),
    ...(force ? ['including done ones'] : []),
    ...(ratePerSecond === undefined ? [] : [`${ratePerSecond} per second`]),
    ...(dryRun ? ['counted only'] : []),
  ].join(', ');
}

/** Replaces the search text by its length, because it may be a customer's data. */
function withoutSearch({ search, ...filter }: EventFilter): object {
  return { ...filter, ...(search !== undefined && { search: `${search.length} characters` }) };
}

function countsOf({ events, deliveries, polls }: PerformedAction['result']): string {
  if (polls !== undefined) return `, polls: ${polls}`;
  if (deliveries === undefined) return '';
  return `, deliveries: ${deliveries}${events === undefined ? '' : `, events: ${events}`}`;
}
