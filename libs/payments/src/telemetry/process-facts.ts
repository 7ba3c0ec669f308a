import type { PaymentsErrorCode } from '../errors/payments-error-code.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';

const MINUTE_MS = 60_000;
/** Number of minutes that are counted: those of the last hour, and the current minute. */
const MINUTES = 61;
/** Maximum number of companies, and of counts by company, so that the report of a process stays below 64 KiB. */
const MAX_KEPT = 40;
/** Number of newest calls of each company whose durations are stored. */
const CALLS = 20;
/** Maximum length of the message of a rejection, in characters. */
const MAX_MESSAGE = 300;

/** How many webhook requests of one company had one result in each minute of the last hour. */
export interface RequestCounts {
  /**
   * Id of the company. `null` if the path names no company or an unknown one, or if this process already counts 40
   * companies and codes.
   */
  readonly company: string | null;
  /** Why the requests were rejected; `null` if they were accepted: they got a 2xx response. */
  readonly code: PaymentsErrorCode | null;
  /** The cause and usually the fix of the newest rejection, as in the log, at most 300 characters; `null` if accepted. */
  readonly message: string | null;
  /** When the newest request ended, by the clock of its process, in milliseconds since the epoch. */
  readonly lastAtMs: number;
  /** Start of the first minute in {@link perMinute}, in milliseconds since the epoch. */
  readonly fromMs: number;
  /** Number of requests in each minute from {@link fromMs} until the minute of the newest request. */
  readonly perMinute: readonly number[];
}

/** What a process knows about a company. */
export interface CompanyFacts {
  readonly company: string;
  /**
   * The accepted webhook secrets, current first. The id is 16 bits of a hash, so that processes can compare secrets,
   * and does not reveal the secret. `verifiedAtMs` is the time of the last request that was verified with the secret,
   * in milliseconds since the epoch; `null` if no request has been verified with it since `secretsSinceMs`. Empty for a
   * company of a directory until its first verified request.
   */
  readonly secrets: readonly { readonly id: string; readonly verifiedAtMs: number | null }[];
  /** The newest token request; `null` if there was none. `errorCode` is `null` if the service returned a token. */
  readonly token: {
    /** When the request ended, by the process clock, in milliseconds since the epoch. */
    readonly atMs: number;
    readonly errorCode: PaymentsErrorCode | null;
  } | null;
  /** The newest call that failed, with the status of its last response; `null` if none failed. */
  readonly lastError:
    (NonNullable<CompanyFacts['token']> & { readonly status: number | null }) | null;
  /** Number of calls since the process started, and how many of them failed. */
  readonly calls: number;
  readonly failedCalls: number;
  /** Durations of the newest 20 calls including their retries, in milliseconds, newest last. */
  readonly callsMs: readonly number[];
}

/** The counts and facts of a process: only values that JSON can represent. */
export interface FactsSnapshot {
  /** The counts of each combination of company and code that had a request in the last hour. */
  readonly requests: readonly RequestCounts[];
  /** The rejections since the newest accepted request; `null` if there are none. `sinceMs` is the time of the first. */
  readonly rejectedInARow: { readonly count: number; readonly sinceMs: number } | null;
  /**
   * Start of the time in which {@link CompanyFacts.secrets} contains every use of a secret, in milliseconds since the
   * epoch.
   */
  readonly secretsSinceMs: number;
  /** At most 40 companies: those with the newest facts. */
  readonly companies: readonly CompanyFacts[];
}

interface Rejection {
  readonly company: string | null;
  readonly code: PaymentsErrorCode;
  readonly message: string;
}

interface EndedCall {
  readonly company: string;
  readonly errorCode: PaymentsErrorCode | null;
  readonly status: number | null;
  readonly durationMs: number;
}

/** A key that verifies webhook requests. */
interface Key {
  sign(body: Uint8Array): Buffer;
}

const SECRET_ID = Buffer.from('nestjs-payments: id of a webhook secret');

/** Counts per minute, for the last {@link MINUTES}. */
class MinuteCounts {
  #first = 0;
  #counts: number[] = [];
  lastAtMs = 0;
  message: string | null = null;

  constructor(
    readonly company: string | null,
    readonly code: PaymentsErrorCode | null,
  ) {}

  add(nowMs: number): void {
    const minute = Math.floor(nowMs / MINUTE_MS);
    if (this.#counts.length === 0 || minute - this.#first >= 2 * MINUTES) {
      this.#first = minute;
      this.#counts = [];
    }
    // The wall clock may jump backwards.
    const index = Math.max(0, minute - this.#first);
    while (this.#counts.length <= index) this.#counts.push(0);
    this.#counts[index]! += 1;
    this.lastAtMs = nowMs;
  }

  /** Removes minutes before the last hour. Returns whether any minutes are left. */
  prune(nowMs: number): boolean {
    const old = Math.floor(nowMs / MINUTE_MS) - MINUTES + 1 - this.#first;
    if (old > 0) {
      this.#counts.splice(0, old);
      this.#first += old;
    }
    return this.#counts.length > 0;
  }

  get counts(): RequestCounts {
    const { company, code, message, lastAtMs } = this;
    const fromMs = this.#first * MINUTE_MS;
    return { company, code, message, lastAtMs, fromMs, perMinute: [...this.#counts] };
  }
}

/** The facts about one company. */
class CompanyRecord {
  #keys: readonly Key[] | null = null;
  #ids: readonly string[] = [];
  /** When each secret last verified a request, by id. Also contains secrets that are not accepted any more. */
  readonly verifiedAtMs = new Map<string, number>();
  token: CompanyFacts['token'] = null;
  lastError: CompanyFacts['lastError'] = null;
  calls = 0;
  failedCalls = 0;
  readonly callsMs: number[] = [];
  /** When the newest of these facts was recorded. */
  usedAtMs = 0;

  constructor(private readonly company: string) {}

  /** Returns the ids of the accepted secrets. */
  accept(keys: readonly Key[]): readonly string[] {
    if (keys !== this.#keys) {
      this.#keys = keys;
      this.#ids = keys.map((key) => key.sign(SECRET_ID).toString('hex', 0, 2));
    }
    return this.#ids;
  }

  get facts(): CompanyFacts {
    const { company, token, lastError, calls, failedCalls, callsMs, verifiedAtMs } = this;
    const secrets = this.#ids.map((id) => ({ id, verifiedAtMs: verifiedAtMs.get(id) ?? null }));
    return { company, secrets, token, lastError, calls, failedCalls, callsMs: [...callsMs] };
  }
}

/**
 * Collects facts about this process for operators: accepted and rejected webhook requests, which webhook secret
 * verified last, and the state of the payments service. Is active even without observers. Therefore, an accepted
 * request must cost little: two look-ups in a map and two reads of the clock. Memory is bounded.
 */
export class ProcessFacts {
  readonly #accepted = new Map<string, MinuteCounts>();
  /** The counts, by error code and company. */
  readonly #rejected = new Map<string, MinuteCounts>();
  readonly #companies = new Map<string, CompanyRecord>();
  #rejectedInARow: FactsSnapshot['rejectedInARow'] = null;
  #secretsSinceMs: number;

  constructor(private readonly runtime: Pick<PaymentsRuntime, 'now'>) {
    this.#secretsSinceMs = runtime.now();
  }

  /** Sets the accepted webhook secrets of a company, current first. */
  configured(company: string, keys: readonly Key[]): void {
    this.#companyOf(company).accept(keys);
  }

  /**
   * Records that a webhook secret verified a request. `index` is the index of the secret among the accepted secrets of
   * the company.
   */
  verified(company: string, keys: readonly Key[], index: number): void {
    const record = this.#companyOf(company);
    record.verifiedAtMs.set(record.accept(keys)[index]!, record.usedAtMs);
  }

  /** Counts a webhook request whose event is safe, so that the response is 2xx. */
  accepted(company: string): void {
    const counts =
      this.#accepted.get(company) ?? this.#added(this.#accepted, company, company, null);
    counts.add(this.runtime.now());
    this.#rejectedInARow = null;
  }

  rejected({ company, code, message }: Rejection): void {
    const nowMs = this.runtime.now();
    const key = `${code} ${company ?? ''}`;
    const counts = this.#rejected.get(key) ?? this.#added(this.#rejected, key, company, code);
    counts.add(nowMs);
    counts.message = message.slice(0, MAX_MESSAGE).toWellFormed();
    const { count, sinceMs } = this.#rejectedInARow ?? { count: 0, sinceMs: nowMs };
    this.#rejectedInARow = { count: count + 1, sinceMs };
  }

  tokenFetched({ company, errorCode }: Pick<EndedCall, 'company' | 'errorCode'>): void {
    const record = this.#companyOf(company);
    record.token = { atMs: record.usedAtMs, errorCode };
  }

  apiCallEnded({ company, errorCode, status, durationMs }: EndedCall): void {
    const record = this.#companyOf(company);
    record.calls += 1;
    record.callsMs.push(Math.round(durationMs));
    if (record.callsMs.length > CALLS) record.callsMs.shift();
    if (errorCode === null) return;
    record.failedCalls += 1;
    record.lastError = { atMs: record.usedAtMs, errorCode, status };
  }

  /**
   * Adds what other processes know about the use of secrets. The store deletes the report of a process an hour after
   * the process has ended, but the rotation of a secret takes longer.
   */
  inherit(others: readonly Pick<FactsSnapshot, 'secretsSinceMs' | 'companies'>[]): void {
    for (const { secretsSinceMs, companies } of others) {
      this.#secretsSinceMs = Math.min(this.#secretsSinceMs, secretsSinceMs);
      for (const { company, secrets } of companies) {
        const { verifiedAtMs } = this.#companyOf(company);
        for (const { id, verifiedAtMs: atMs } of secrets) {
          const known = verifiedAtMs.get(id) ?? 0;
          if (atMs !== null && atMs > known) verifiedAtMs.set(id, atMs);
        }
      }
    }
  }

  snapshot(): FactsSnapshot {
    const nowMs = this.runtime.now();
    const all = [this.#accepted, this.#rejected];
    for (const requests of all) {
      for (const [key, counts] of requests) if (!counts.prune(nowMs)) requests.delete(key);
    }
    return {
      requests: all.flatMap((requests) => Array.from(requests.values(), ({ counts }) => counts)),
      rejectedInARow: this.#rejectedInARow,
      secretsSinceMs: this.#secretsSinceMs,
      companies: Array.from(this.#companies.values(), ({ facts }) => facts),
    };
  }

  /**
   * Returns new counts for a company. If there are too many counts already, returns the counts that all further
   * companies share.
   */
  #added(
    requests: Map<string, MinuteCounts>,
    key: string,
    company: string | null,
    code: PaymentsErrorCode | null,
  ): MinuteCounts {
    // The number of codes is limited, so counts without a company always have room.
    const full = company !== null && this.#accepted.size + this.#rejected.size >= MAX_KEPT;
    const name = full ? `${code ?? ''} ` : key;
    const counts = requests.get(name) ?? new MinuteCounts(full ? null : company, code);
    requests.set(name, counts);
    return counts;
  }

  #companyOf(company: string): CompanyRecord {
    let record = this.#companies.get(company);
    if (record === undefined) {
      if (this.#companies.size >= MAX_KEPT) {
        const [[oldest]] = [...this.#companies].toSorted(
          ([, a], [, b]) => a.usedAtMs - b.usedAtMs,
        ) as [[string, CompanyRecord]];
        this.#companies.delete(oldest);
      }
      record = new CompanyRecord(company);
      this.#companies.set(company, record);
    }
    record.usedAtMs = this.runtime.now();
    return record;
  }
}
