import { Injectable } from '@nestjs/common';
import type { EventPage, PaymentInbox, RedriveQuery, SelectionResult } from 'nestjs-payments';
import { AuditTrail } from './audit-trail.js';
import {
  counted,
  factsOf,
  failuresOf,
  handlerOf,
  named,
  performed,
  redriveOf,
  selectionOf,
  wanted,
} from './audit-words.js';
import type { ActionResult, ConsoleAction } from './audit-words.js';
import { BulkSelection } from './bulk-selection.js';
import { badRequest, ConsoleException } from './console-exception.filter.js';
import { ConsoleInbox } from './console-inbox.js';
import type { ConsolePermission } from './console-options.js';
import { ConsoleOverview, handlersOf } from './console-overview.js';
import {
  AcknowledgeDto,
  AskDto,
  CloseDto,
  FailureGroupDto,
  HandlerDto,
  PauseDto,
  RedriveDto,
  SetupDto,
  SkipDto,
  StopDto,
} from './request-dtos.js';
import { validBody } from './request-validation.js';

interface PlannedAction {
  /** What the operator selected, in words that follow the verb of the action. */
  readonly target: string;
  readonly dryRun?: boolean;
  /** Whether the action only starts a redrive, which continues after the response. */
  readonly started?: boolean;
  readonly run: () => Promise<ActionResult>;
}

/**
 * Performs the actions of operators. Records each action in the audit trail, with the operator, the request and the
 * result.
 */
@Injectable()
export class ConsoleActions {
  constructor(
    private readonly inbox: ConsoleInbox,
    private readonly overview: ConsoleOverview,
    private readonly audit: AuditTrail,
  ) {}

  /**
   * @throws ConsoleException 400 if the body is not valid, 403 if the operator may only look, 404 for `ask` and `close`
   *   without the option `reconcile`, 409 if the handler to forget is registered by a running process, or if the
   *   redrive to stop has ended, 503 if the inbox is not reachable.
   */
  async perform(
    action: ConsoleAction,
    { who, may }: { who: string | null; may: ConsolePermission },
    body: unknown,
  ): Promise<object> {
    let target = '';
    let id: string | undefined;
    try {
      const planned = await this.#plan(action, who, body);
      target = planned.target;
      if (may !== 'act' && !planned.dryRun) {
        throw new ConsoleException(403, 'You may look, but not act. Ask an operator who may act.');
      }
      const { dryRun = false, started } = planned;
      if (!dryRun) id = await this.audit.started(who, wanted(action, target));
      const result = await planned.run();
      const text = performed(action, target, result, { dryRun, started });
      await this.audit.performed(who, text, !dryRun, id);
      return result;
    } catch (error) {
      const text = `could not ${wanted(action, target)}`;
      await this.audit.failed(who, text, error, may === 'act', id);
      throw error;
    } finally {
      this.overview.invalidate();
    }
  }

  async #plan(action: ConsoleAction, who: string | null, body: unknown): Promise<PlannedAction> {
    if (action === 'redrive' || action === 'skip') {
      const request = await validBody(action === 'redrive' ? RedriveDto : SkipDto, body);
      requireOneSelection(request);
      const run = async () => {
        await this.#requireKnown(request.handler);
        return this.inbox.call<ActionResult>((inbox) =>
          request instanceof RedriveDto ? redrive(inbox, who, request) : skip(inbox, request),
        );
      };
      const { dryRun, filter, newestOnly = false } = request as SkipDto & Partial<RedriveDto>;
      const started = action === 'redrive' && filter !== undefined && !newestOnly && !dryRun;
      return { target: selectionOf(request), dryRun, started, run };
    }
    if (action === 'stop') {
      const { id } = await validBody(StopDto, body);
      const run = async () => {
        if (await this.inbox.call((inbox) => inbox.stopRedrive(id))) return {};
        throw new ConsoleException(409, 'The redrive has already ended.');
      };
      const job = (await this.inbox.call((inbox) => inbox.redriveJobs())).find(
        (one) => one.id === id,
      );
      return { target: job ? redriveOf(job) : `redrive ${JSON.stringify(id)}`, run };
    }
    if (action === 'ask') {
      const { expectations } = await validBody(AskDto, body);
      const run = async () => ({
        polls: await this.inbox.callExpectations((them) => them.askNow(expectations)),
      });
      return { target: `about ${counted(expectations.length, 'expectation')}`, run };
    }
    if (action === 'close') {
      const { expectations, note } = await validBody(CloseDto, body);
      const run = () =>
        this.inbox.callExpectations(async (them) => {
          let closed = 0;
          for (const { company, reference } of expectations) {
            if (await them.cancel(reference, { company, by: who ?? 'unknown', note })) closed += 1;
          }
          return { closed };
        });
      const names = expectations.map(({ company, reference: id }) => ({ company, id }));
      const target = `${named(names, 'expectation')} with the note ${JSON.stringify(note)}`;
      return { target, run };
    }
    if (action === 'setup') {
      const { check, company } = await validBody(SetupDto, body);
      const target = `the check ${check}${company === undefined ? '' : ` of company ${company}`}`;
      const run = async () => ({ checks: await this.inbox.checkSetup(check, company) });
      return { target, dryRun: check !== 'webhook', run };
    }
    if (action === 'acknowledge' || action === 'withdraw') {
      const isNote = action === 'acknowledge';
      const group = await validBody(isNote ? AcknowledgeDto : FailureGroupDto, body);
      const note = group instanceof AcknowledgeDto ? group.note : null;
      const { handler, state, error, count } = group;
      const seen = { handler, state, error, count, newestAt: new Date(group.newestAt) };
      const run = async () => {
        await this.inbox.call((inbox) => inbox.acknowledge({ ...seen, who, note }));
        return {};
      };
      const failures = failuresOf(group);
      return { target: isNote ? `${failures}: ${note}` : `the note on ${failures}`, run };
    }
    if (action === 'pause') {
      const { handler, reason, until } = await validBody(PauseDto, body);
      const facts = {
        who: who ?? undefined,
        reason,
        until: until === undefined ? undefined : new Date(until),
      };
      const run = async () => {
        await this.#requireKnown(handler, false);
        await this.inbox.call((inbox) => inbox.pause(handler, facts)).catch(asBadRequest);
        return {};
      };
      return { target: `${handlerOf(handler)}${factsOf(facts)}`, run };
    }
    const { handler } = await validBody(HandlerDto, body);
    const target = handlerOf(handler);
    if (action === 'forget') return { target, run: () => this.#forget(handler) };
    const run = async () => {
      // A handler that was forgotten while it was paused can still be resumed.
      await this.#requireKnown(handler);
      await this.inbox.call((inbox) => inbox.resume(handler));
      return {};
    };
    return { target, run };
  }

  async #forget(handler: string): Promise<{ deliveries: number }> {
    if (handler === '*') throw badRequest('"handler" must be the name of one handler to forget.');
    await this.#requireKnown(handler, false);
    const deliveries = await this.inbox.call((inbox) => inbox.forgetHandler(handler));
    if (deliveries !== null) return { deliveries };
    throw new ConsoleException(
      409,
      `A running process has registered the handler ${JSON.stringify(handler)}. Before you forget the handler, stop the process or remove the handler from the code.`,
    );
  }

  /** @param stored whether to include handlers that are known only from a stored delivery or a pause */
  async #requireKnown(handler: string | undefined, stored = true): Promise<void> {
    if (handler === undefined || handler === '*') return;
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

function requireOneSelection(request: SkipDto | RedriveDto): void {
  const { events, filter, handler } = request;
  if ((events === undefined) === (filter === undefined)) {
    throw badRequest('The body must contain either "events" or "filter".');
  }
  if (handler !== undefined && (filter?.handler ?? handler) !== handler) {
    throw badRequest('"handler" and "filter.handler" name different handlers: omit one of them.');
  }
  if (events === undefined || !(request instanceof RedriveDto)) return;
  const { ratePerSecond, newestOnly } = request;
  if (ratePerSecond === undefined && !newestOnly) return;
  const name = newestOnly ? 'newestOnly' : 'ratePerSecond';
  throw badRequest(`"${name}" is allowed only with "filter", not with "events".`);
}

async function redrive(
  inbox: PaymentInbox,
  who: string | null,
  request: RedriveDto,
): Promise<ActionResult> {
  const { events, filter, handler, force, dryRun, ratePerSecond, newestOnly } = request;
  // The inbox adds deliveries only for the handlers in its catalog.
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
  const given = filter!.toFilter();
  const undelivered = given.state === 'unhandled' || given.state === 'stale';
  if (undelivered && handlers.length === 0) return { events: 0, deliveries: 0 };
  const query: RedriveQuery = {
    ...given,
    force,
    ...(undelivered ? { handlers } : handler !== undefined && { handler }),
  };
  if (dryRun) return inbox.redrive({ ...query, dryRun });
  if (newestOnly) return redriveNewest(inbox, query);
  const rate = ratePerSecond === undefined ? {} : { ratePerSecond };
  const { total } = await inbox.startRedrive(query, { ...rate, startedBy: who });
  return total;
}

/** Maximum number of queries that look for the newest matching event. Each query compares up to 20,000 events. */
const MAX_PAGES = 25;

async function redriveNewest(inbox: PaymentInbox, query: RedriveQuery): Promise<ActionResult> {
  const { handlers: _handlers, force, ...filter } = query;
  const dead = force || filter.state !== undefined ? {} : { state: 'dead' as const };
  let after: string | null = null;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const page: EventPage = await inbox.list({ ...filter, ...dead, limit: 100, after });
    for (const { company, id } of page.events) {
      const result = await inbox.redrive({ ...query, company, ids: [id] });
      if (result.deliveries > 0) return { ...result, event: { company, id } };
    }
    after = page.next;
    if (after === null) break;
  }
  return { events: 0, deliveries: 0 };
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

/**
 * Throws an exception with the status 400 for a TypeError, which the inbox throws for a value out of bounds. Rethrows
 * all other errors.
 */
function asBadRequest(error: unknown): never {
  throw error instanceof TypeError ? badRequest(error.message) : error;
}
