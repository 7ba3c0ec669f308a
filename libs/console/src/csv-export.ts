import { Injectable } from '@nestjs/common';
import type { FailureGroup, StoredEvent } from 'nestjs-payments';
import { ConsoleException } from './console-exception.filter.js';
import { ConsoleInbox } from './console-inbox.js';
import type { ShownExpectation } from './console-inbox.js';
import { ConsoleOverview } from './console-overview.js';
import { EventListQueryDto, ExpectationListQueryDto } from './request-dtos.js';
import { validQuery } from './request-validation.js';

/** Maximum number of rows in a CSV file. */
const MAX_ROWS = 10_000;
/**
 * Maximum number of pages that the console reads for a CSV file. For each page, the store compares up to 20,000 rows
 * with the filter.
 */
const MAX_PAGES = 25;
const PAGE = 1000;

type Columns<T> = Readonly<Record<string, (row: T) => string | number | Date | null>>;

const EVENTS: Columns<StoredEvent> = {
  received: ({ receivedAt }) => receivedAt,
  company: ({ company }) => company,
  event: ({ id }) => id,
  type: ({ eventType }) => eventType,
  source: ({ source }) => source,
  reference: ({ reference }) => reference,
  transaction: ({ orderingKey }) => orderingKey,
  amount: ({ amount }) => amount,
  currency: ({ currency }) => currency,
  deliveries: ({ deliveries }) =>
    deliveries.map(({ handler, state }) => `${handler} ${state}`).join(', '),
};

const EXPECTATIONS: Columns<ShownExpectation> = {
  created: ({ createdAt }) => createdAt,
  company: ({ company }) => company,
  reference: ({ reference }) => reference,
  transaction: ({ transactionId }) => transactionId,
  state: ({ state }) => state,
  'last result': ({ lastPoll }) => lastPoll && lastPoll.result,
  detail: ({ lastPoll, contradiction }) => contradiction ?? lastPoll?.detail ?? null,
  'last asked': ({ lastPoll }) => lastPoll && lastPoll.at,
  event: ({ fulfilled }) => fulfilled && fulfilled.eventId,
  amount: ({ amount }) => amount,
  currency: ({ currency }) => currency,
  closed: ({ cancelled }) => cancelled && cancelled.at,
  'closed by': ({ cancelled }) => cancelled && cancelled.by,
  note: ({ cancelled }) => cancelled && cancelled.note,
};

const FAILURES: Columns<FailureGroup> = {
  handler: ({ handler }) => handler,
  state: ({ state }) => state,
  deliveries: ({ count }) => count,
  error: ({ error }) => error,
  'last failed from': ({ oldestAt }) => oldestAt,
  'last failed to': ({ newestAt }) => newestAt,
  company: ({ company }) => company,
  event: ({ eventId }) => eventId,
};

export interface CsvFile {
  readonly text: string;
  readonly rows: number;
  /** Whether the list has more rows than the file contains. */
  readonly more: boolean;
  /** The filter that selected the rows. */
  readonly filter: object;
}

/** The lists of the page as CSV files (RFC 4180). */
@Injectable()
export class CsvExport {
  constructor(
    private readonly inbox: ConsoleInbox,
    private readonly overview: ConsoleOverview,
  ) {}

  /**
   * Returns at most 10,000 rows of a list.
   *
   * @throws ConsoleException 404 if there is no such list, 400 if the query is not valid, 503 if the inbox is not
   *   reachable.
   */
  async file(list: string, query: object): Promise<CsvFile> {
    if (list === 'events') {
      const filter = (await validQuery(EventListQueryDto, query)).toQuery();
      return readAll(EVENTS, filter, async (part) => {
        const page = await this.inbox.call((inbox) => inbox.list({ ...filter, ...part }));
        return { rows: page.events, next: page.next };
      });
    }
    if (list === 'expectations') {
      const filter = (await validQuery(ExpectationListQueryDto, query)).toQuery();
      return readAll(EXPECTATIONS, filter, async (part) => {
        const page = await this.inbox.listExpectations({ ...filter, ...part });
        return { rows: page.expectations, next: page.next };
      });
    }
    if (list === 'failures') {
      const { groups, more } = await this.overview.failures();
      return { text: csvOf(FAILURES, groups), rows: groups.length, more, filter: {} };
    }
    throw new ConsoleException(
      404,
      'There is no such list. The lists are events, expectations and failures.',
    );
  }
}

async function readAll<T>(
  columns: Columns<T>,
  { limit: _limit, after: _after, ...filter }: { limit?: number; after?: string | null },
  read: (part: {
    limit: number;
    after: string | null;
  }) => Promise<{ rows: readonly T[]; next: string | null }>,
): Promise<CsvFile> {
  const rows: T[] = [];
  let next: string | null = null;
  for (let page = 0; page < MAX_PAGES && rows.length < MAX_ROWS; page += 1) {
    const found = await read({ limit: PAGE, after: next });
    rows.push(...found.rows);
    next = found.next;
    if (next === null) break;
  }
  const more = next !== null || rows.length > MAX_ROWS;
  const first = rows.slice(0, MAX_ROWS);
  return { text: csvOf(columns, first), rows: first.length, more, filter };
}

/**
 * Returns rows as the text of a CSV file. The text begins with a byte order mark, without which Excel does not read it
 * as UTF-8.
 */
function csvOf<T>(columns: Columns<T>, rows: readonly T[]): string {
  const values = Object.values(columns);
  const lines = [
    Object.keys(columns),
    ...rows.map((row) => values.map((value) => cellOf(value(row)))),
  ];
  return `\uFEFF${lines.map((line) => `${line.join(',')}\r\n`).join('')}`;
}

/** A plain number is not a formula, even if it is negative. */
const NUMBER = /^-?\d+(\.\d+)?$/;
/**
 * The places at which a spreadsheet could begin a formula: the start of the text, and after a character that may separate
 * cells or lines.
 */
const FORMULA = /^(?=[=+\-@\t\r\n＝＋－＠])|(?<=[;\t\r\n])(?=[=+\-@＝＋－＠])/g;

/** Returns a value as a field of a CSV file, with an apostrophe before each possible formula. */
export function cellOf(value: string | number | Date | null): string {
  if (value === null) return '';
  const text = value instanceof Date ? value.toISOString() : String(value);
  const safe = NUMBER.test(text) ? text : text.replace(FORMULA, "'");
  return /[",;\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
