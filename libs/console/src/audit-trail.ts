import { Inject, Injectable, Logger } from '@nestjs/common';
import type { AuditEntry, StoredAuditEntry } from 'nestjs-payments';
import { ConsoleException } from './console-exception.filter.js';
import { ConsoleInbox } from './console-inbox.js';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { printable } from './operator-name.js';
import type { AuditQueryDto } from './request-dtos.js';

/** Minimum time between two log lines about the same operator and event. An open page requests its event every 2 s. */
const INTERVAL_MS = 60_000;
/** Maximum number of remembered views. Further views are recorded each time. */
const MAX_REMEMBERED = 1_000;
/** Maximum length of a text in an entry, in characters. The log contains the whole text. */
const MAX_TEXT = 1_000;
/** Maximum number of entries that are compared with a filter. */
const MAX_COMPARED = 1_000;
/** The error of an action that was started. */
const NO_RESULT = 'The result is not known: the action still runs, or its process has ended.';

/**
 * Records each action of an operator, and each view of a payload: first in the log, then in the inbox, from which every
 * process shows them. The start of an action is recorded only in the inbox, so that no action is missing if the process
 * dies before the action is logged. Views are recorded at most once per minute per operator and event. Above
 * {@link MAX_REMEMBERED} remembered views, further views are recorded each time, so that no view is missing. No log
 * line and no entry contains a payload. If the inbox is not reachable, only the log contains the entry.
 */
@Injectable()
export class AuditTrail {
  readonly #logger = new Logger('PaymentsConsole');
  /** When each view was recorded, the oldest first. */
  readonly #viewed = new Map<string, number>();

  constructor(
    @Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions,
    private readonly inbox: ConsoleInbox,
  ) {}

  /** Records a view. Await this method before the payload is sent. `who` is `null` if the operator is not known. */
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
    await this.#store({ who, text, event, error: null });
  }

  /**
   * Records an action without a result. Await this method before the action.
   *
   * @param text what the operator wants, such as `pause handler "book"`
   * @returns the id of the entry, for its result; `undefined` if the inbox is not reachable
   */
  started(who: string | null, text: string): Promise<string | undefined> {
    return this.#store({ who, text, event: null, error: NO_RESULT });
  }

  /**
   * Await this method before the result is sent.
   *
   * @param text what the operator did, such as `paused handler "book"`
   * @param kept `false` for an action that only counted or checked. Only the log contains such an action.
   * @param id the id of the entry of the started action
   */
  async performed(who: string | null, text: string, kept: boolean, id?: string): Promise<void> {
    this.#logger.log(printable(`${operator(who)}: ${text}`));
    if (kept) await this.#store({ who, text, event: null, error: null }, id);
  }

  /**
   * @param text what the operator tried, such as `could not pause handler "book"`
   * @param kept `false` for an operator who may only look. Only the log contains the failure, because such an operator
   *   could otherwise remove the stored actions with many rejected ones.
   * @param id the id of the entry of the started action
   */
  async failed(who: string | null, text: string, error: unknown, kept: boolean, id?: string) {
    const cause = error instanceof Error ? error.message : 'The thrown value is not an Error.';
    this.#logger.warn(printable(`${operator(who)}: ${text}. ${cause}`));
    if (kept) await this.#store({ who, text, event: null, error: shortened(cause) }, id);
  }

  /**
   * Returns the last entries of all processes that match, newest first. `comparedFrom` is the time of the oldest entry
   * that was compared with the filter; `null` if all were.
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

  async #store(entry: AuditEntry, replaces?: string): Promise<string | undefined> {
    try {
      const text = shortened(entry.text);
      return await this.inbox.call((inbox) => inbox.recordAudit({ ...entry, text }, replaces));
    } catch (error) {
      // The entry and the outage are in the log.
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
