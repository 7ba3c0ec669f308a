import { Inject, Injectable, Logger } from '@nestjs/common';
import type { SelectionResult } from '../inbox/inbox.redrive.js';
import type { PaymentInbox } from '../inbox/payment.inbox.js';
import type { EventFilter } from '../inbox/inbox-store.js';
import { readHandler, readRedrive, readSkip } from './action-orders.js';
import type { DeliveryOrder, RedriveOrder } from './action-orders.js';
import { ConsoleInbox } from './console-inbox.js';
import { ConsoleOverview, handlersOf } from './console-overview.js';
import { badRequest } from './console-refusal.js';
import { seenOnly } from './operator-name.js';
import { PickedDeliveries } from './bulk-selection.js';

/** What an operator may do. */
export type ConsoleAction = 'redrive' | 'skip' | 'pause' | 'resume';

/** Does what operators ask for, and says in the log who asked for what and what became of it. */
@Injectable()
export class ConsoleActions {
  readonly #logger = new Logger('PaymentsConsole');

  constructor(
    @Inject(ConsoleInbox) private readonly inbox: ConsoleInbox,
    @Inject(ConsoleOverview) private readonly overview: ConsoleOverview,
  ) {}

  /** @throws ConsoleRefusal 400 where the body is wrong, 503 where the inbox is out of reach. */
  async perform(action: ConsoleAction, who: string | null, body: unknown): Promise<object> {
    const actor = `${JSON.stringify(who ?? 'unknown')}: ${action}`;
    try {
      const [asked, result] = await this.#perform(action, body);
      const became = 'deliveries' in result ? `, ${amount(result as SelectionResult)}` : '';
      this.#logger.log(seenOnly(`${actor} ${asked}${became}`));
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
    if (handler !== '*') await this.#requireKnown(handler);
    await this.inbox.ask((inbox) => inbox[action](handler));
    return [handler === '*' ? 'all handlers' : `handler ${JSON.stringify(handler)}`, {}];
  }

  async #redrive(inbox: PaymentInbox, order: RedriveOrder): Promise<SelectionResult> {
    const { target, handler, force, dryRun, ratePerSecond } = order;
    const registered = inbox.handlers();
    // The inbox adds deliveries only to handlers of this process.
    const added = handler === undefined ? registered : registered.filter((it) => it === handler);
    if ('events' in target) {
      const picked = await PickedDeliveries.find(inbox, target.events, handler);
      const states = ['dead', 'skipped', 'pending', ...(force ? (['done'] as const) : [])] as const;
      for (const state of states) {
        await picked.inState(state, (query) => inbox.redrive({ ...query, force, dryRun }));
      }
      if (added.length > 0) {
        await picked.withoutDelivery((query) =>
          inbox.redrive({ ...query, handlers: added, dryRun }),
        );
      }
      return picked.result;
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

  /** @throws ConsoleRefusal 400. */
  async #requireKnown(handler: string | undefined): Promise<void> {
    if (handler === undefined) return;
    const known = await this.inbox.ask(async (inbox) => handlersOf(inbox, await inbox.stats()));
    if (known.includes(handler)) return;
    const names = known.join(', ') || 'none';
    throw badRequest(`No handler is named ${JSON.stringify(handler)}. There are: ${names}.`);
  }
}

async function skip(inbox: PaymentInbox, order: DeliveryOrder): Promise<SelectionResult> {
  const { target, handler, dryRun } = order;
  if ('filter' in target) {
    return inbox.skip({ ...target.filter, dryRun, ...(handler !== undefined && { handler }) });
  }
  const picked = await PickedDeliveries.find(inbox, target.events, handler);
  for (const state of ['dead', 'pending'] as const) {
    await picked.inState(state, (query) => inbox.skip({ ...query, dryRun }));
  }
  return picked.result;
}

/** For the log: what was asked, without the text that was searched for, which may be a customer's. */
function describe(order: DeliveryOrder & Partial<RedriveOrder>): string {
  const { target, handler, dryRun, force, ratePerSecond } = order;
  const which =
    'events' in target
      ? `${target.events.length} picked events`
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

function amount({ events, deliveries }: SelectionResult): string {
  return `deliveries: ${deliveries}, events: ${events}`;
}
