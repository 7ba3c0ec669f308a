import { Inject, Injectable, Logger } from '@nestjs/common';
import type { SelectionResult } from '../inbox/inbox-redrive.js';
import type { PaymentInbox } from '../inbox/payment-inbox.js';
import type { EventFilter } from '../inbox/inbox-store.js';
import { readHandler, readRedrive, readSkip } from './action-orders.js';
import type { DeliveryOrder, RedriveOrder } from './action-orders.js';
import { ConsoleInbox } from './console-inbox.js';
import { ConsoleOverview, handlersOf } from './console-overview.js';
import { badRequest, ConsoleRefusal } from './console-refusal.js';
import { seenOnly } from './operator-name.js';
import { BulkSelection } from './bulk-selection.js';

/** What an operator may do. */
export type ConsoleAction = 'redrive' | 'skip' | 'pause' | 'resume' | 'forget';

/** Performs the actions of operators, and logs who asked for what, and the result. */
@Injectable()
export class ConsoleActions {
  readonly #logger = new Logger('PaymentsConsole');

  constructor(
    @Inject(ConsoleInbox) private readonly inbox: ConsoleInbox,
    @Inject(ConsoleOverview) private readonly overview: ConsoleOverview,
  ) {}

  /**
   * @throws ConsoleRefusal 400 if the body is wrong, 409 if a live worker has the handler to forget, 503 if the inbox
   *   is not reachable.
   */
  async perform(action: ConsoleAction, who: string | null, body: unknown): Promise<object> {
    const actor = `${JSON.stringify(who ?? 'unknown')}: ${action}`;
    try {
      const [asked, result] = await this.#perform(action, body);
      this.#logger.log(seenOnly(`${actor} ${asked}${amount(result)}`));
      return result;
    } catch (error) {
      const why = error instanceof Error ? error.message : 'it threw what is no error';
      this.#logger.warn(seenOnly(`${actor} was refused or failed. ${why}`));
      throw error;
    } finally {
      this.overview.forget();
    }
  }

  async #perform(action: ConsoleAction, body: unknown): Promise<[asked: string, result: object]> {
    if (action === 'redrive') {
      const order = readRedrive(body);
      await this.#requireKnown(order.handler);
      return [describe(order), await this.inbox.ask((inbox) => this.#redrive(inbox, order))];
    }
    if (action === 'skip') {
      const order = readSkip(body);
      await this.#requireKnown(order.handler);
      return [describe(order), await this.inbox.ask((inbox) => skip(inbox, order))];
    }
    const handler = readHandler(body);
    if (action === 'forget') {
      return [`handler ${JSON.stringify(handler)}`, await this.#forget(handler)];
    }
    // A handler that was forgotten can still be paused from before.
    if (handler !== '*') await this.#requireKnown(handler, action === 'resume');
    await this.inbox.ask((inbox) => inbox[action](handler));
    return [handler === '*' ? 'all handlers' : `handler ${JSON.stringify(handler)}`, {}];
  }

  async #redrive(inbox: PaymentInbox, order: RedriveOrder): Promise<SelectionResult> {
    const { target, handler, force, dryRun, ratePerSecond } = order;
    // The inbox adds deliveries only to the handlers that it knows.
    const added = (await inbox.handlers())
      .map(({ name }) => name)
      .filter((name) => (handler ?? name) === name);
    if ('events' in target) {
      const selected = await BulkSelection.find(inbox, target.events, handler);
      const states = ['dead', 'skipped', 'pending', ...(force ? (['done'] as const) : [])] as const;
      for (const state of states) {
        await selected.inState(state, (query) => inbox.redrive({ ...query, force, dryRun }));
      }
      if (added.length > 0) {
        await selected.withoutDelivery((query) =>
          inbox.redrive({ ...query, handlers: added, dryRun }),
        );
      }
      return selected.result;
    }
    const { filter } = target;
    const how = { force, dryRun, ...(ratePerSecond !== undefined && { ratePerSecond }) };
    if (filter.state === 'unhandled' || filter.state === 'stale') {
      if (added.length === 0) return { events: 0, deliveries: 0 };
      return inbox.redrive({ ...filter, ...how, handlers: added });
    }
    if (handler === undefined || (filter.handler ?? handler) === handler) {
      return inbox.redrive({ ...filter, ...how, ...(handler !== undefined && { handler }) });
    }
    throw badRequest('"handler" and "filter.handler" name two handlers: leave one out.');
  }

  async #forget(handler: string): Promise<{ deliveries: number }> {
    if (handler === '*') throw badRequest('"handler" must be the name of one handler to forget.');
    await this.#requireKnown(handler, false);
    const deliveries = await this.inbox.ask((inbox) => inbox.forgetHandler(handler));
    if (deliveries !== null) return { deliveries };
    throw new ConsoleRefusal(
      409,
      `A running process has the handler ${JSON.stringify(handler)}. Stop it, or remove the handler from it, first.`,
    );
  }

  /** @throws ConsoleRefusal 400. */
  async #requireKnown(handler: string | undefined, stored = true): Promise<void> {
    if (handler === undefined) return;
    const names = await this.inbox.ask(async (inbox) => {
      const known = stored ? await handlersOf(inbox, await inbox.stats()) : await inbox.handlers();
      return known.map(({ name }) => name);
    });
    if (names.includes(handler)) return;
    throw badRequest(
      `No handler is named ${JSON.stringify(handler)}. There are: ${names.join(', ') || 'none'}.`,
    );
  }
}

async function skip(inbox: PaymentInbox, order: DeliveryOrder): Promise<SelectionResult> {
  const { target, handler, dryRun } = order;
  if ('filter' in target) {
    return inbox.skip({ ...target.filter, dryRun, ...(handler !== undefined && { handler }) });
  }
  const selected = await BulkSelection.find(inbox, target.events, handler);
  for (const state of ['dead', 'pending'] as const) {
    await selected.inState(state, (query) => inbox.skip({ ...query, dryRun }));
  }
  return selected.result;
}

/** For the log: what was asked, without the search text, which may be a customer's. */
function describe(order: DeliveryOrder & Partial<RedriveOrder>): string {
  const { target, handler, dryRun, force, ratePerSecond } = order;
  const which =
    'events' in target
      ? `${target.events.length} selected events`
      : `the filter ${JSON.stringify(withoutSearch(target.filter))}`;
  return [
    which,
    ...(handler === undefined ? [] : [`handler ${JSON.stringify(handler)}`]),
    ...(force ? ['done ones too'] : []),
    ...(ratePerSecond === undefined ? [] : [`${ratePerSecond} a second`]),
    ...(dryRun ? ['counted only'] : []),
  ].join(', ');
}

function withoutSearch({ search, ...filter }: EventFilter): object {
  return { ...filter, ...(search !== undefined && { search: `${search.length} characters` }) };
}

function amount(result: object): string {
  const { events, deliveries } = result as Partial<SelectionResult>;
  if (deliveries === undefined) return '';
  return `, deliveries: ${deliveries}${events === undefined ? '' : `, events: ${events}`}`;
}
