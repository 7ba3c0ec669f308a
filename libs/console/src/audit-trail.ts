import { Inject, Injectable, Logger } from '@nestjs/common';
import type { SelectionResult, SetupCheck } from 'nestjs-payments';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { printable } from './operator-name.js';

export const CONSOLE_ACTIONS = [
  'redrive',
  'skip',
  'stop',
  'pause',
  'resume',
  'forget',
  'ask',
  'close',
  'setup',
] as const;
export type ConsoleAction = (typeof CONSOLE_ACTIONS)[number];
type RecordedAction = ConsoleAction | 'export';

/** Minimum time between two log lines about the same operator and event. An open page requests its event every 2 s. */
const INTERVAL_MS = 60_000;
/** Maximum number of remembered views. Views above this number are logged each time. */
const MAX_REMEMBERED = 1_000;
/** Applies to actions and to views separately, so that many views do not remove actions from the page. */
export const MAX_ENTRIES = 500;
/** Maximum length of a text in an entry, in characters. The log contains the whole text. */
const MAX_TEXT = 1_000;

export type ActionResult = Partial<SelectionResult> & {
  readonly polls?: number;
  readonly closed?: number;
  readonly checks?: readonly SetupCheck[];
};

/** An action of an operator, or the view of a payload. */
export interface AuditEntry {
  /** Number of the entry. Each process numbers its entries in order. */
  readonly id: number;
  /** When the action ended, by the process clock. */
  readonly at: Date;
  /** Name of the operator; `null` if it is not known. */
  readonly who: string | null;
  readonly action: RecordedAction | 'view';
  /** Describes what the operator selected; empty if the request was not valid. */
  readonly target: string;
  /** The event whose payload was viewed; `null` for an action. */
  readonly event: { readonly company: string; readonly id: string } | null;
  readonly result: ActionResult;
  /** Why the action was rejected or failed; `null` if it was performed. */
  readonly error: string | null;
}

/**
 * Logs each action of an operator, and each view of a payload. Views are logged at most once per minute per operator
 * and event. Above {@link MAX_REMEMBERED} remembered views, further views are logged each time, so that the log
 * contains every view. The page shows the last entries of this process. No log line and no entry contains a payload.
 */
@Injectable()
export class AuditTrail {
  readonly #logger = new Logger('PaymentsConsole');
  /** When each view was logged, the oldest first. */
  readonly #logged = new Map<string, number>();
  readonly #actions: AuditEntry[] = [];
  readonly #views: AuditEntry[] = [];
  #count = 0;
  /** When this process started to record entries. */
  readonly since: Date;

  constructor(@Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions) {
    this.since = new Date(options.runtime.now());
  }

  /** Records a view. Call this method before the payload is sent. `who` is `null` if the operator is not known. */
  viewed(who: string | null, event: { company: string; id: string }): void {
    const now = this.options.runtime.monotonic();
    for (const [view, at] of this.#logged) {
      if (now - at < INTERVAL_MS) break;
      this.#logged.delete(view);
    }
    const { company, id } = event;
    const target = `event ${JSON.stringify(id)} of company ${JSON.stringify(company)}`;
    const view = `${JSON.stringify(who)} ${target}`;
    if (this.#logged.has(view)) return;
    if (this.#logged.size < MAX_REMEMBERED) this.#logged.set(view, now);
    this.#logger.log(printable(`${operator(who)}: viewed ${target}`));
    this.#keep(this.#views, { who, action: 'view', target, event, result: {}, error: null });
  }

  /** `kept` is `false` for an action that only counted or checked. The page does not show such an action. */
  performed(
    who: string | null,
    action: RecordedAction,
    { target, result, kept }: { target: string; result: ActionResult; kept: boolean },
  ): void {
    this.#logger.log(printable(`${operator(who)}: ${action} ${target}${countsOf(result)}`));
    if (kept) this.#keep(this.#actions, { who, action, target, event: null, result, error: null });
  }

  failed(who: string | null, action: ConsoleAction, target: string, error: unknown): void {
    const cause = error instanceof Error ? error.message : 'The thrown value is not an Error.';
    const what = [action, target].filter(Boolean).join(' ');
    this.#logger.warn(printable(`${operator(who)}: ${what} was rejected or failed. ${cause}`));
    this.#keep(this.#actions, { who, action, target, event: null, result: {}, error: cause });
  }

  /** Returns the last entries, newest first. */
  latest(show: 'all' | 'actions' | 'views', limit: number): AuditEntry[] {
    const entries = [
      ...(show === 'views' ? [] : this.#actions),
      ...(show === 'actions' ? [] : this.#views),
    ];
    return entries.toSorted((a, b) => b.id - a.id).slice(0, limit);
  }

  #keep(entries: AuditEntry[], { target, error, ...entry }: Omit<AuditEntry, 'id' | 'at'>): void {
    this.#count += 1;
    const at = new Date(this.options.runtime.now());
    const texts = { target: shortened(target), error: error && shortened(error) };
    entries.push({ id: this.#count, at, ...entry, ...texts });
    if (entries.length > MAX_ENTRIES) entries.shift();
  }
}

function operator(who: string | null): string {
  return JSON.stringify(who ?? 'unknown');
}

function countsOf({ events, deliveries, polls, closed }: ActionResult): string {
  if (polls !== undefined) return `, polls: ${polls}`;
  if (closed !== undefined) return `, closed: ${closed}`;
  if (deliveries === undefined) return '';
  return `, deliveries: ${deliveries}${events === undefined ? '' : `, events: ${events}`}`;
}

function shortened(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT).toWellFormed()} …` : text;
}
