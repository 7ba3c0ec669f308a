import type { EventFilter } from '../inbox/inbox-store.js';
import { badRequest } from './console-refusal.js';
import { HANDLER, readBodyFilter, readSelected } from './console-queries.js';
import type { EventName } from './console-queries.js';
import { RequestFields } from './request-fields.js';

/** Which deliveries an action is for. */
export type Target = { readonly events: readonly EventName[] } | { readonly filter: EventFilter };

/** An action on deliveries. */
export interface DeliveryOrder {
  readonly target: Target;
  /** Only deliveries to this handler. */
  readonly handler: string | undefined;
  readonly dryRun: boolean;
}

/** To run them again. */
export interface RedriveOrder extends DeliveryOrder {
  readonly force: boolean;
  readonly ratePerSecond: number | undefined;
}

const TARGET = ['events', 'filter', 'handler', 'dryRun'];

/** @throws ConsoleRefusal 400. */
export function readRedrive(body: unknown): RedriveOrder {
  const fields = RequestFields.ofBody(body, [...TARGET, 'force', 'ratePerSecond']);
  const order = readOrder(fields);
  const ratePerSecond = fields.rate('ratePerSecond', { max: 1000 });
  if (ratePerSecond !== undefined && 'events' in order.target) {
    throw badRequest('"ratePerSecond" goes with "filter": it does not apply to "events".');
  }
  return { ...order, force: fields.flag('force') ?? false, ratePerSecond };
}

/** @throws ConsoleRefusal 400. */
export function readSkip(body: unknown): DeliveryOrder {
  const order = readOrder(RequestFields.ofBody(body, TARGET));
  const { target, handler } = order;
  if ('filter' in target && handler !== undefined && target.filter.handler !== undefined) {
    if (target.filter.handler !== handler) {
      throw badRequest('"handler" and "filter.handler" name two handlers: leave one out.');
    }
  }
  return order;
}

/** The handler to pause, resume or forget; `*` for all. @throws ConsoleRefusal 400. */
export function readHandler(body: unknown): string {
  const handler = RequestFields.ofBody(body, ['handler']).text('handler', HANDLER);
  if (handler === undefined) {
    throw badRequest('"handler" must be the name of a handler, or * for all.');
  }
  return handler;
}

function readOrder(fields: RequestFields): DeliveryOrder {
  if (fields.has('events') === fields.has('filter')) {
    throw badRequest('The body must have either "events" or "filter".');
  }
  const target = fields.has('events')
    ? { events: readSelected(fields.raw('events')) }
    : { filter: readBodyFilter(fields.raw('filter')) };
  return {
    target,
    handler: fields.text('handler', HANDLER),
    dryRun: fields.flag('dryRun') ?? false,
  };
}
