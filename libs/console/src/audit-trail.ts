import { Inject, Injectable, Logger } from '@nestjs/common';
import type { AuditEntry, StoredAuditEntry } from 'nestjs-payments';
import { ConsoleException } from './console-exception.filter.js';
import { ConsoleInbox } from './console-inbox.js';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { printable } from './operator-name.js';
import type { AuditQueryDto } from './request-dtos.js';

/**
 * Minimum time between two entries about views of the same event by the same operator, in milliseconds. An open page
 * requests its event every 2 s.
 */
const INTERVAL_MS = 60_000;
/** Maximum number of views that are remembered. A view that is not remembered is recorded again each time. */
const MAX_REMEMBERED = 1_000;
/** Maximum length of a text in an entry of the inbox, in characters. The log contains the whole text. */
const MAX_TEXT = 1_000;
/** Maximum number of entries that are compared with a filter. */
const MAX_COMPARED = 1_000;

/** An entry to store. `event` and `error` are `null` by default. */
type NewEntry = Pick<AuditEntry, 'who' | 'text' | 'outcome'> & Partial<AuditEntry>;

/**
 * Writes each action of an operator, and each view of a payload, to the log and then to the inbox. The console in every
 * process shows the entries of the inbox. The start of an action is stored only in the inbox, so that the inbox
 * contains an entry even if the process dies before it logs the action. Views are recorded at most once per minute per
 * operator and event. If {@link MAX_REMEMBERED} views are remembered, each further view is recorded every time, so that
 * no view is missing. No log line and no entry contains a payload. If the inbox is not reachable, only the log contains
 * the entry.
 */
@Injectable()
export class AuditTrail {
  readonly #logger = new Logger('PaymentsConsole');
  /** When each remembered view was recorded. The oldest view comes first. */
  readonly #viewed = new Map<string, number>();

  constructor(
    @Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions,
    private readonly inbox: ConsoleInbox,
  ) {}

  /**
   * Records that an operator views the payload of an event. Await this method before you send the payload. `who` is
   * `null` if the operator is not known.
   */
  async viewed(who: string | null, event: { company: string; id: string }): Promise<void> {
    const now = this.options.runtime.monotonic();
    for (const [view, at] of this.#viewed) {
      if (now - at < INTERVAL_MS) break;
      this.#viewed.delete(view);
    }
    const { company, id } = event;
    const text = `viewed event ${JSON.stringify(id)} of company ${JSON.stringify(company)}`;
    const view = `${JSON.stringify(who)} ${text}`;
    if (this.#viewed.has(view)) return;
    if (this.#viewed.size < MAX_REMEMBERED) this.#viewed.set(view, now);
    this.#logger.log(printable(`${operator(who)}: ${text}`));
    await this.#store({ who, text, event, outcome: 'done' });
  }

  /**
   * Stores the start of an action in the inbox. Await this method before you run the action.
   *
   * @param text what the operator wants, such as `pause handler "book"`
   * @returns the id of the entry, to which `performed()` or `failed()` adds the result; `undefined` if the inbox is not
   *   reachable
   */
  started(who: string | null, text: string): Promise<string | undefined> {
    return this.#store({ who, text, outcome: 'unknown' });
  }

  /**
   * Records an action that succeeded. Await this method before you send the response.
   *
   * @param text what the operator did, such as `paused handler "book"`
   * @param kept `false` for an action that changed nothing, such as a count or a check. Only the log contains such an
   *   action.
   * @param id the id of the entry of the started action
   */
  async performed(who: string | null, text: string, kept: boolean, id?: string): Promise<void> {
    this.#logger.log(printable(`${operator(who)}: ${text}`));
    if (kept) await this.#store({ who, text, outcome: 'done' }, id);
  }

  /**
   * Records an action that failed.
   *
   * @param text what the operator tried, such as `could not pause handler "book"`
   * @param kept `false` for an operator who may only look. Only the log contains failures of such an operator.
   *   Otherwise, many rejected actions of this operator would remove the stored entries of other operators.
   * @param id the id of the entry of the started action
   */
  async failed(who: string | null, text: string, error: unknown, kept: boolean, id?: string) {
    const cause = error instanceof Error ? error.message : 'The thrown value is not an Error.';
    this.#logger.warn(printable(`${operator(who)}: ${text}. ${cause}`));
    if (kept) await this.#store({ who, text, outcome: 'failed', error: shortened(cause) }, id);
  }

  /**
   * Returns the newest entries of all processes that match the filter, newest first. `comparedFrom` is the time of the
   * oldest entry that was compared with the filter; `null` if all entries were compared.
   *
   * @throws ConsoleException 503 if the inbox is not reachable.
   */
  async latest({ show, limit, who, from, to }: AuditQueryDto): Promise<{
    entries: StoredAuditEntry[];
    comparedFrom: Date | null;
  }> {
    const all = [who, from, to].every((field) => field === undefined);
    const read = await this.inbox.call((inbox) => inbox.audit(show, all ? limit : MAX_COMPARED));
    const name = who?.toLowerCase();
    const entries = read.filter(
      (entry) =>
        (name === undefined || (entry.who ?? 'unknown').toLowerCase() === name) &&
        (from === undefined || entry.at >= new Date(from)) &&
        (to === undefined || entry.at < new Date(to)),
    );
    const oldest = (!all && read[MAX_COMPARED - 1]?.at) || null;
    return { entries: entries.slice(0, limit), comparedFrom: oldest };
  }

  async #store(
    { who, text, outcome, event = null, error = null }: NewEntry,
    replaces?: string,
  ): Promise<string | undefined> {
    const entry = { who, text: shortened(text), outcome, event, error };
    try {
      return await this.inbox.call((inbox) => inbox.recordAudit(entry, replaces));
    } catch (error) {
      // The log contains the text of the entry and the outage.
      if (!(error instanceof ConsoleException)) throw error;
      return undefined;
    }
  }
}

function operator(who: string | null): string {
  return JSON.stringify(who ?? 'unknown');
}

function shortened(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT).toWellFormed()} …` : text;
}
