import type { CompanyFacts, InboxProcess, RequestCounts } from 'nestjs-payments';

const MINUTE_MS = 60_000;
/** Number of minutes that the console shows: those of the last hour, and the current minute. */
const MINUTES = 61;

/**
 * When the newest stored event of each source was received, by the clock of the store. `null` if none of the newest
 * 20,000 events has the source.
 */
export interface NewestEvents {
  readonly webhook: Date | null;
  readonly poll: Date | null;
  readonly overdue: Date | null;
  /**
   * The usual time between two minutes with webhook requests: the 90th percentile of the recent gaps, in milliseconds.
   * `null` if there were too few such minutes.
   */
  readonly usualGapMs: number | null;
}

/** The webhook requests of one company that all processes rejected with one error code in the last hour. */
export interface ConsoleRejection extends Pick<RequestCounts, 'code' | 'company' | 'message'> {
  readonly count: number;
  readonly lastAt: Date;
}

/** A company whose webhook requests are all rejected. */
export interface RejectedCompany extends Pick<RequestCounts, 'code' | 'message'> {
  readonly company: string;
  /**
   * Number of requests that were rejected in the last hour. If a request was accepted in this hour, counts only the
   * minutes after the minute of the newest accepted request.
   */
  readonly count: number;
}

/** When the webhook secrets of a company last verified a webhook request. Contains no secret. */
export interface ConsoleSecrets {
  readonly company: string;
  /** `null` if the current secret has not verified a request since {@link since}. */
  readonly current: Date | null;
  /**
   * When one of the previous secrets last verified a request; `null` if none has verified a request since {@link
   * since}.
   */
  readonly previous: Date | null;
  /** Number of previous secrets. */
  readonly previousCount: number;
  /** The time since which `current` and `previous` are complete. */
  readonly since: Date;
  /** Whether running processes have different secrets, as during a deployment. */
  readonly differ: boolean;
}

/** The webhook requests that all processes received. Polls and overdue payments are not counted. */
export interface ConsoleArrivals extends Pick<NewestEvents, 'poll' | 'overdue' | 'usualGapMs'> {
  /** When the newest webhook request was accepted or rejected; `null` if none is known. */
  readonly lastRequestAt: Date | null;
  readonly lastAcceptedAt: Date | null;
  /** Whether the time since the newest accepted request is much longer than the usual time between requests. */
  readonly late: boolean;
  /**
   * Number of requests that were rejected since the newest accepted request; 0 if no request was rejected in the last
   * hour.
   */
  readonly rejectedInARow: number;
  /**
   * Companies whose webhook requests are rejected. In the last hour, requests of such a company were rejected and none
   * was accepted, or at least three were rejected after the newest accepted request. Sorted by company.
   */
  readonly rejectedCompanies: readonly RejectedCompany[];
  /** Counts per minute of the last hour and of the current minute, with the oldest minute first. */
  readonly minutes: readonly {
    readonly startsAt: Date;
    readonly accepted: number;
    readonly rejected: number;
  }[];
  /** The most frequent first. */
  readonly rejections: readonly ConsoleRejection[];
  /** Sorted by company. */
  readonly secrets: readonly ConsoleSecrets[];
}

/** What all processes know about the calls of one company to the payments service. */
export interface ConsoleService extends Pick<
  CompanyFacts,
  'company' | 'token' | 'lastError' | 'calls' | 'failedCalls'
> {
  /** Number of the newest calls from which the times are computed: at most 20 of each process. */
  readonly timedCalls: number;
  readonly p50Ms: number | null;
  readonly slowestMs: number | null;
}

/**
 * The next webhook request counts as late if this multiple of the usual time between requests has passed, and at the
 * earliest after {@link MIN_LATE_MS}.
 */
const LATE_FACTOR = 3;
const MIN_LATE_MS = 5 * MINUTE_MS;
/**
 * If this many requests of a company were rejected after its newest accepted request, the console reports that all its
 * requests are rejected.
 */
const MIN_REJECTED = 3;

export function arrivalsOf(
  processes: readonly InboxProcess[],
  { webhook, poll, overdue, usualGapMs }: NewestEvents,
  nowMs: number,
): ConsoleArrivals {
  const counts = processes.flatMap(({ requests }) => requests);
  const newestOf = (wanted: (one: RequestCounts) => boolean): number =>
    Math.max(0, ...counts.filter(wanted).map(({ lastAtMs }) => lastAtMs));
  const rejectedMs = newestOf(({ code }) => code !== null);
  const acceptedMs = Math.max(
    newestOf(({ code }) => code === null),
    +(webhook ?? 0),
  );
  const lateAfterMs = Math.max(MIN_LATE_MS, LATE_FACTOR * (usualGapMs ?? Infinity));
  const rows = rejectedMs === 0 ? [] : processes.flatMap((process) => process.rejectedInARow ?? []);
  return {
    lastRequestAt: dateOf(Math.max(acceptedMs, rejectedMs)),
    lastAcceptedAt: dateOf(acceptedMs),
    usualGapMs,
    late: acceptedMs > 0 && nowMs - acceptedMs > lateAfterMs,
    rejectedInARow: sum(
      rows.filter(({ sinceMs }) => sinceMs >= acceptedMs).map((row) => row.count),
    ),
    rejectedCompanies: rejectedCompaniesOf(counts, nowMs),
    minutes: minutesOf(counts, nowMs),
    rejections: rejectionsOf(counts, nowMs),
    secrets: secretsOf(processes),
    poll,
    overdue,
  };
}

/**
 * Returns what all processes know about the calls of each company to the payments service, sorted by company. Omits
 * companies without a token and without calls.
 */
export function servicesOf(processes: readonly InboxProcess[]): ConsoleService[] {
  const facts = processes.flatMap(({ companies }) => companies);
  return byCompany(facts.filter(({ token, calls }) => token !== null || calls > 0)).map(
    ([company, all]) => {
      const callsMs = all.flatMap((one) => one.callsMs).toSorted((a, b) => a - b);
      return {
        company,
        token: latest(all.map(({ token }) => token)),
        lastError: latest(all.map(({ lastError }) => lastError)),
        calls: sum(all.map(({ calls }) => calls)),
        failedCalls: sum(all.map(({ failedCalls }) => failedCalls)),
        timedCalls: callsMs.length,
        p50Ms: callsMs[Math.ceil(callsMs.length / 2) - 1] ?? null,
        slowestMs: callsMs.at(-1) ?? null,
      };
    },
  );
}

function minutesOf(counts: readonly RequestCounts[], nowMs: number): ConsoleArrivals['minutes'] {
  const first = Math.floor(nowMs / MINUTE_MS) - MINUTES + 1;
  const minutes = Array.from({ length: MINUTES }, (_, index) => ({
    startsAt: new Date((first + index) * MINUTE_MS),
    accepted: 0,
    rejected: 0,
  }));
  for (const { code, fromMs, perMinute } of counts) {
    for (const [index, count] of perMinute.entries()) {
      const minute = minutes[fromMs / MINUTE_MS + index - first];
      if (minute) minute[code === null ? 'accepted' : 'rejected'] += count;
    }
  }
  return minutes;
}

function rejectionsOf(counts: readonly RequestCounts[], nowMs: number): ConsoleRejection[] {
  const rejected = counts.filter(({ code }) => code !== null);
  return [...Map.groupBy(rejected, ({ code, company }) => `${code} ${company ?? ''}`).values()]
    .map((same) => {
      const { code, company, message, lastAtMs } = newest(same);
      const count = sum(minutesOf(same, nowMs).map((minute) => minute.rejected));
      return { code, company, message, count, lastAt: new Date(lastAtMs) };
    })
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count);
}

function rejectedCompaniesOf(counts: readonly RequestCounts[], nowMs: number): RejectedCompany[] {
  const known = counts.flatMap((one) =>
    one.company === null ? [] : { ...one, company: one.company },
  );
  return byCompany(known).flatMap(([company, all]) => {
    const minutes = minutesOf(all, nowMs);
    const accepted = minutes.findLastIndex((minute) => minute.accepted > 0);
    const count = sum(minutes.slice(accepted + 1).map((minute) => minute.rejected));
    if (count < (accepted === -1 ? 1 : MIN_REJECTED)) return [];
    const { code, message } = newest(all.filter((one) => one.code !== null));
    return [{ company, count, code, message }];
  });
}

function newest(counts: readonly RequestCounts[]): RequestCounts {
  return counts.reduce((a, b) => (b.lastAtMs > a.lastAtMs ? b : a));
}

function secretsOf(processes: readonly InboxProcess[]): ConsoleSecrets[] {
  const since = new Date(Math.min(...processes.map(({ secretsSinceMs }) => secretsSinceMs)));
  const known = processes
    // The secrets of the process that started last are the newest.
    .toSorted((a, b) => b.startedAtMs - a.startedAtMs)
    .flatMap(({ state, companies }) => companies.map((facts) => ({ ...facts, state })))
    .filter(({ secrets }) => secrets.length > 0);
  return byCompany(known).map(([company, all]) => {
    const running = all.filter(({ state }) => state === 'running');
    const [{ secrets }] = (running.length > 0 ? running : all) as [(typeof all)[0]];
    const [current, ...previous] = secrets.map(({ id }) => id);
    const lastUse = (ids: readonly (string | undefined)[]) =>
      dateOf(
        Math.max(
          0,
          ...all
            .flatMap((one) => one.secrets)
            .map(({ id, verifiedAtMs }) => (ids.includes(id) ? (verifiedAtMs ?? 0) : 0)),
        ),
      );
    const lists = new Set(running.map((one) => one.secrets.map(({ id }) => id).join()));
    return {
      company,
      current: lastUse([current]),
      previous: lastUse(previous),
      previousCount: previous.length,
      since,
      differ: lists.size > 1,
    };
  });
}

function byCompany<T extends { readonly company: string }>(facts: readonly T[]): [string, T[]][] {
  return [...Map.groupBy(facts, ({ company }) => company)].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function latest<T extends { readonly atMs: number }>(values: readonly (T | null)[]): T | null {
  return values.reduce((a, b) => ((b?.atMs ?? 0) > (a?.atMs ?? 0) ? b : a), null);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function dateOf(ms: number): Date | null {
  return ms === 0 ? null : new Date(ms);
}
