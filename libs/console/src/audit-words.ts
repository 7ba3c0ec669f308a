import { errorParts } from 'nestjs-payments';
import type {
  FailureGroup,
  PauseFacts,
  RedriveJob,
  SelectionResult,
  SetupCheck,
} from 'nestjs-payments';
import type { EventIdDto, RedriveDto, SkipDto } from './request-dtos.js';

export const CONSOLE_ACTIONS = [
  'redrive',
  'skip',
  'stop',
  'acknowledge',
  'withdraw',
  'pause',
  'resume',
  'forget',
  'ask',
  'close',
  'setup',
] as const;
export type ConsoleAction = (typeof CONSOLE_ACTIONS)[number];

export type ActionResult = Partial<SelectionResult> & {
  /** The event whose deliveries were redriven, if the action redrives only one event. */
  readonly event?: { readonly company: string; readonly id: string };
  readonly polls?: number;
  readonly closed?: number;
  readonly checks?: readonly SetupCheck[];
};

const VERBS: Readonly<Record<ConsoleAction, readonly [verb: string, past: string]>> = {
  redrive: ['redrive', 'redrove'],
  skip: ['skip', 'skipped'],
  stop: ['stop', 'stopped'],
  acknowledge: ['acknowledge', 'acknowledged'],
  withdraw: ['withdraw', 'withdrew'],
  pause: ['pause', 'paused'],
  resume: ['resume', 'resumed'],
  forget: ['forget', 'forgot'],
  ask: ['ask', 'asked'],
  close: ['close', 'closed'],
  setup: ['run', 'ran'],
};

/** Maximum number of selected events that an audit entry names. */
const MAX_NAMED = 5;

/** Describes an action that was performed, such as `redrove 12 deliveries of handler "book"`. */
export function performed(
  action: ConsoleAction,
  target: string,
  { deliveries = 0, polls, closed }: ActionResult,
  { dryRun, started = false }: { dryRun: boolean; started?: boolean | undefined },
): string {
  const [verb, past] = VERBS[action];
  const amount = counted(deliveries, 'delivery', 'deliveries');
  if (action === 'redrive' || action === 'skip') {
    // The redrive of a filter is a job, which has only started.
    if (started) return `started to ${verb} ${amount} ${target}`;
    return dryRun ? `counted ${amount} ${target} to ${verb}` : `${past} ${amount} ${target}`;
  }
  if (action === 'forget') return `${past} ${target} and skipped ${amount}`;
  if (polls !== undefined) return `${past} ${target}: ${counted(polls, 'poll')}`;
  if (closed !== undefined)
    return `${past} ${target} (${closed} ${closed === 1 ? 'was' : 'were'} open)`;
  return `${past} ${target}`;
}

/** Describes an action without its result, such as `pause handler "book"`. */
export function wanted(action: ConsoleAction, target: string): string {
  const what = action === 'redrive' || action === 'skip' ? `deliveries ${target}` : target;
  return `${VERBS[action][0]} ${what}`.trimEnd();
}

/** Describes an export, such as `exported 3 rows of events: state dead`. */
export function exported(list: string, rows: number, filter: object): string {
  const fields = Object.entries(filter).map(([name, value]: [string, unknown]) => {
    if (name === 'search') return `search of ${String(value).length} characters`;
    if (name === 'error') return `error ${pattern(String(value))}`;
    return `${name} ${value instanceof Date ? value.toISOString() : String(value)}`;
  });
  return [`exported ${counted(rows, 'row')} of ${list}`, fields.join(', ')]
    .filter(Boolean)
    .join(': ');
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

export function handlerOf(handler: string): string {
  return handler === '*' ? 'all handlers' : `handler ${JSON.stringify(handler)}`;
}

export function factsOf({ until, reason }: PauseFacts): string {
  const end = until === undefined ? '' : ` until ${until.toISOString()}`;
  return reason === undefined ? end : `${end}: ${reason}`;
}

/** Describes the deliveries of a group of failures. */
export function failuresOf({
  handler,
  error,
  count,
}: Pick<FailureGroup, 'handler' | 'error' | 'count'>): string {
  const deliveries = counted(count, 'delivery', 'deliveries');
  return `${deliveries} of ${handlerOf(handler)} with the error ${pattern(error)}`;
}

/** Describes a redrive job by the deliveries that the job redrives. */
export function redriveOf({ query, ratePerSecond }: RedriveJob): string {
  const { handlers = [], force, from, to: _to, ...others } = query;
  const handler = query.handler ?? (handlers.length === 1 ? handlers[0] : undefined);
  const filter = { ...others, ...(from && { from: from.toISOString() }) };
  const request = { handler, force, ratePerSecond, filter };
  return `the redrive of deliveries ${selectionOf(request as unknown as RedriveDto)}`;
}

/**
 * Describes the selected deliveries. The description does not contain the text of a search, because this text may
 * contain a customer's data. The description contains only the part of an error that is the same for the whole group of
 * errors.
 */
export function selectionOf(request: SkipDto | RedriveDto): string {
  const { events, filter } = request;
  const { force = false, ratePerSecond, newestOnly } = request as Partial<RedriveDto>;
  const { eventType, company, search, error, from, to } = filter ?? {};
  const handler = request.handler ?? filter?.handler;
  const state = filter?.state ?? (events === undefined && !force ? 'dead' : undefined);
  return [
    ...(events === undefined ? [] : [`of ${named(events, 'event')}`]),
    ...(handler === undefined ? [] : [`of ${handlerOf(handler)}`]),
    ...(error === undefined ? [] : [`with the error ${pattern(error)}`]),
    ...(state === undefined ? [] : [`in the state ${state}`]),
    ...(eventType === undefined ? [] : [`of type ${JSON.stringify(eventType)}`]),
    ...(company === undefined ? [] : [`of company ${JSON.stringify(company)}`]),
    ...(from === undefined ? [] : [`received since ${from}`]),
    ...(to === undefined ? [] : [`received before ${to}`]),
    ...(search === undefined ? [] : [`found by a search of ${search.length} characters`]),
    ...(newestOnly ? ['of the newest event'] : []),
    ...(force && state !== 'done' ? ['including done ones'] : []),
    ...(ratePerSecond === undefined ? [] : [`at ${ratePerSecond} per second`]),
  ].join(' ');
}

function pattern(error: string): string {
  const parts = errorParts(error).map((part, index) => (index % 2 === 0 ? part : '…'));
  return JSON.stringify(parts.join(''));
}

export function named(events: readonly EventIdDto[], what: 'event' | 'expectation'): string {
  const names = events
    .slice(0, MAX_NAMED)
    .map(({ company, id }) =>
      company === 'default'
        ? JSON.stringify(id)
        : `${JSON.stringify(id)} of company ${JSON.stringify(company)}`,
    );
  if (events.length === 1) return `${what} ${names[0]}`;
  const more = events.length - names.length;
  return `${events.length} ${what}s: ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
