import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../../../test/support/log/captured-log.js';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import type { Company } from './company.js';
import { DirectoryCompanies } from './directory-companies.js';

const ACME: Company = { id: 'acme', clientId: 'c', clientSecret: 's', webhookSecret: 'w' };
const DEFAULTS = { baseUrl: 'https://payments.example.com' };
const LIMITS = { maxLookupsPerSecond: 3, deadlineMs: 5000 };

describe('DirectoryCompanies', () => {
  let runtime: FakeRuntime;
  let lookups: string[];
  let respond: (id: string) => Company | undefined | Promise<Company | undefined>;
  let companies: DirectoryCompanies;
  let log: CapturedLog;
  beforeEach(() => {
    log = new CapturedLog();
    Logger.overrideLogger(log);
    runtime = new FakeRuntime();
    lookups = [];
    respond = (id) => (id.startsWith('stranger') ? undefined : { ...ACME, id, webhookSecret: id });
    const find = (id: string) => (lookups.push(id), respond(id));
    companies = new DirectoryCompanies({ find }, DEFAULTS, LIMITS, runtime);
  });
  afterEach(() => Logger.overrideLogger(['error']));

  it('DirectoryCompanies keeps companies cached during lookups of many invented ids', async () => {
    await companies.find('acme');
    for (let i = 0; i <= 1000; i += 1) await companies.find(`stranger-${i}`);
    lookups.length = 0;
    expect(await companies.find('acme')).toMatchObject({ id: 'acme' });
    await companies.find('stranger-1000');
    await companies.find('stranger-1');
    expect(lookups).toEqual([]);
    // "stranger-0" was the oldest of 1,001 ids, and 1,000 are cached.
    await companies.find('stranger-0');
    expect(lookups).toEqual(['stranger-0']);
  });

  it('DirectoryCompanies keeps the newest 10,000 companies cached', async () => {
    for (let i = 0; i <= 10_000; i += 1) await companies.find(`c-${i}`);
    lookups.length = 0;
    await companies.find('c-1');
    await companies.find('c-10000');
    expect(lookups).toEqual([]);
    await companies.find('c-0');
    expect(lookups).toEqual(['c-0']);
  });

  it('DirectoryCompanies caches a company for 60 s, counted from the end of the lookup', async () => {
    let found: (company: Company) => void = () => {};
    respond = async () => new Promise((resolve) => (found = resolve));
    const first = companies.find('acme');
    runtime.advance(4000);
    found(ACME);
    await first;
    runtime.advance(59_999);
    await companies.find('acme');
    expect(lookups).toEqual(['acme']);
    runtime.advance(1);
    respond = () => undefined;
    expect(await companies.find('acme')).toBeUndefined();
    expect(lookups).toEqual(['acme', 'acme']);
  });

  it('DirectoryCompanies shares one lookup among simultaneous callers when a cached company has expired', async () => {
    await companies.find('acme');
    runtime.advance(60_000);
    const all = await Promise.all([companies.find('acme'), companies.find('acme')]);
    expect(lookups).toEqual(['acme', 'acme']);
    expect(all[0]).toBe(all[1]);
  });

  it('DirectoryCompanies shares a failure among simultaneous callers, and caches it for a second', async () => {
    respond = async () => Promise.reject(new Error('down'));
    const both = await Promise.allSettled([companies.find('acme'), companies.find('acme')]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(both[0]).toMatchObject({ reason: { code: 'directory_unavailable' } });
    respond = () => ACME;
    runtime.advance(999);
    await expect(companies.find('acme')).rejects.toMatchObject({ code: 'directory_unavailable' });
    expect(lookups).toEqual(['acme']);
    runtime.advance(1);
    expect(await companies.find('acme')).toMatchObject({ id: 'acme' });
  });

  it('DirectoryCompanies finds a removed company again at most 5 s after the application has restored the company', async () => {
    await companies.find('acme');
    runtime.advance(60_000);
    respond = () => undefined;
    expect(await companies.find('acme')).toBeUndefined();
    respond = () => ACME;
    runtime.advance(5000);
    expect(await companies.find('acme')).toMatchObject({ id: 'acme' });
  });

  const forWebhook = async (id: string) =>
    companies.findForWebhook(id, runtime.monotonic()).then(
      (company) => company?.id ?? 'none',
      (error: { code: string }) => error.code,
    );

  it('SE-06 DirectoryCompanies limits the lookups per second for webhook requests, but not for calls of the application', async () => {
    const ids = ['stranger-1', 'stranger-2', 'acme', 'bolt'];
    expect(await Promise.all(ids.map(forWebhook))).toEqual([
      'none',
      'none',
      'acme',
      'directory_unavailable',
    ]);
    expect(await companies.find('bolt')).toMatchObject({ id: 'bolt' });
    // The company "bolt" is cached now.
    expect(await forWebhook('bolt')).toBe('bolt');
    expect(await forWebhook('stranger-1')).toBe('none');
    expect(lookups).toEqual(['stranger-1', 'stranger-2', 'acme', 'bolt']);
    expect(log.lines).toEqual([expect.stringMatching(/^warn .*more than 3 company lookups/)]);
    runtime.advance(1000);
    expect(await forWebhook('cafe')).toBe('cafe');
  });

  it('SE-06 after a request with a valid signature, DirectoryCompanies does not limit lookups of the company until the company is removed', async () => {
    await forWebhook('acme');
    companies.verified('acme');
    runtime.advance(60_000);
    for (let i = 0; i < 3; i += 1) await forWebhook(`stranger-${i}`);
    expect(await forWebhook('stranger-3')).toBe('directory_unavailable');
    expect(await forWebhook('acme')).toBe('acme');
    respond = () => undefined;
    runtime.advance(60_000);
    expect(await forWebhook('acme')).toBe('none');
    runtime.advance(5000);
    for (let i = 0; i < 3; i += 1) await forWebhook(`stranger-${i}`);
    expect(await forWebhook('acme')).toBe('directory_unavailable');
  });

  it('SE-06 DirectoryCompanies ends a lookup without a result at its time limit, and starts a new lookup later', async () => {
    let found: (company: Company) => void = () => {};
    respond = async () => new Promise((resolve) => (found = resolve));
    const first = forWebhook('acme');
    runtime.advance(4000);
    const second = forWebhook('acme');
    runtime.advance(1000);
    expect(await Promise.all([first, second])).toEqual(Array(2).fill('directory_unavailable'));
    expect(log.lines).toEqual([expect.stringMatching(/^error .*acme.*no result within 5000 ms/)]);
    // This result is ignored, because its lookup has already ended.
    found(ACME);
    respond = (id) => ({ ...ACME, id, clientId: 'newer' });
    runtime.advance(1000);
    expect(await companies.find('acme')).toMatchObject({ clientId: 'newer' });
    expect(lookups).toEqual(['acme', 'acme']);
  });

  it('SE-06 DirectoryCompanies rejects a webhook request at its deadline, and uses the result of the lookup for the next request', async () => {
    let found: (company: Company) => void = () => {};
    respond = async () => new Promise((resolve) => (found = resolve));
    const arrivedAt = runtime.monotonic();
    runtime.advance(3000);
    const company = companies.findForWebhook('acme', arrivedAt);
    runtime.advance(2000);
    await expect(company).rejects.toMatchObject({ code: 'directory_unavailable' });
    found(ACME);
    expect(await forWebhook('acme')).toBe('acme');
    expect(lookups).toEqual(['acme']);
    expect(runtime.pending).toBe(0);
  });

  it('SE-06 DirectoryCompanies limits the simultaneous lookups for webhook requests to the number per second', async () => {
    respond = async () => new Promise(() => {});
    const hanging = ['a', 'b', 'c'].map(forWebhook);
    runtime.advance(2000);
    expect(await forWebhook('d')).toBe('directory_unavailable');
    runtime.advance(3000);
    await Promise.all(hanging);
    respond = (id) => ({ ...ACME, id });
    expect(await forWebhook('d')).toBe('d');
  });

  it.each([
    ['an id in another case', 'ACME', /returned a company with the id "ACME"/],
    ['no id', undefined, /returned a company without a valid "id"/],
    ['an invalid id', 'acme ', /without a valid "id"/],
    ['a number as id', 17, /without a valid "id"/],
  ])(
    'SE-07 DirectoryCompanies treats a company with %s like an unknown company',
    async (_, id, words) => {
      respond = () => ({ ...ACME, id }) as Company;
      expect(await forWebhook('acme')).toBe('none');
      expect(log.lines).toEqual([expect.stringMatching(words)]);
      expect(log.lines[0]).toMatch(/^warn For the id "acme", .*Return a company only if its "id"/);
      await expect(companies.find('acme')).rejects.toMatchObject({
        code: 'company_unknown',
        message: expect.stringMatching(words),
      });
      runtime.advance(4999);
      expect(await forWebhook('acme')).toBe('none');
      expect(lookups).toEqual(['acme']);
      expect(log.lines).toHaveLength(1);
      runtime.advance(1);
      respond = () => ACME;
      expect(await forWebhook('acme')).toBe('acme');
    },
  );

  it('SE-10 DirectoryCompanies logs companies with the same webhook secret once per minute, without the secret', async () => {
    respond = (id) => ({ ...ACME, id, webhookSecret: [`${id}-private`, 'shared-private'] });
    for (const id of ['acme', 'bolt', 'cafe']) await companies.find(id);
    expect(log.lines).toEqual([
      expect.stringMatching(/^warn .*the same webhook secret for the companies "acme" and "bolt"/),
    ]);
    expect(log.lines[0]).not.toContain('private');
    runtime.advance(60_000);
    expect(log.lines.splice(0)).toEqual([
      expect.anything(),
      expect.stringMatching(/^warn .*the same webhook secret for the companies "acme" and "cafe"/),
    ]);
    respond = (id) => ({ ...ACME, id, webhookSecret: `${id}-private` });
    for (const id of ['acme', 'bolt', 'cafe']) await companies.find(id);
    runtime.advance(60_000);
    expect(log.lines).toEqual([]);
  });
});
