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
  let asked: string[];
  let answer: (id: string) => Company | undefined | Promise<Company | undefined>;
  let companies: DirectoryCompanies;
  let log: CapturedLog;
  beforeEach(() => {
    log = new CapturedLog();
    Logger.overrideLogger(log);
    runtime = new FakeRuntime();
    asked = [];
    answer = (id) => (id.startsWith('stranger') ? undefined : { ...ACME, id, webhookSecret: id });
    const find = (id: string) => (asked.push(id), answer(id));
    companies = new DirectoryCompanies({ find }, DEFAULTS, LIMITS, runtime);
  });
  afterEach(() => Logger.overrideLogger(['error']));

  it('keeps companies in its cache despite lookups of many invented ids', async () => {
    await companies.find('acme');
    for (let i = 0; i <= 1000; i += 1) await companies.find(`stranger-${i}`);
    asked.length = 0;
    expect(await companies.find('acme')).toMatchObject({ id: 'acme' });
    await companies.find('stranger-1000');
    await companies.find('stranger-1');
    expect(asked).toEqual([]);
    // The oldest of 1,001 was displaced.
    await companies.find('stranger-0');
    expect(asked).toEqual(['stranger-0']);
  });

  it('keeps the newest 10,000 companies', async () => {
    for (let i = 0; i <= 10_000; i += 1) await companies.find(`c-${i}`);
    asked.length = 0;
    await companies.find('c-1');
    await companies.find('c-10000');
    expect(asked).toEqual([]);
    await companies.find('c-0');
    expect(asked).toEqual(['c-0']);
  });

  it('counts the age of an answer from its arrival', async () => {
    let found: (company: Company) => void = () => {};
    answer = async () => new Promise((resolve) => (found = resolve));
    const first = companies.find('acme');
    runtime.advance(4000);
    found(ACME);
    await first;
    runtime.advance(59_999);
    await companies.find('acme');
    expect(asked).toEqual(['acme']);
    runtime.advance(1);
    answer = () => undefined;
    expect(await companies.find('acme')).toBeUndefined();
    expect(asked).toEqual(['acme', 'acme']);
  });

  it('shares one lookup among callers while an old answer is refreshed', async () => {
    await companies.find('acme');
    runtime.advance(60_000);
    const all = await Promise.all([companies.find('acme'), companies.find('acme')]);
    expect(asked).toEqual(['acme', 'acme']);
    expect(all[0]).toBe(all[1]);
  });

  it('shares a failure among waiting callers, and keeps it for a second', async () => {
    answer = async () => Promise.reject(new Error('down'));
    const both = await Promise.allSettled([companies.find('acme'), companies.find('acme')]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(both[0]).toMatchObject({ reason: { code: 'directory_unavailable' } });
    answer = () => ACME;
    runtime.advance(999);
    await expect(companies.find('acme')).rejects.toMatchObject({ code: 'directory_unavailable' });
    expect(asked).toEqual(['acme']);
    runtime.advance(1);
    expect(await companies.find('acme')).toMatchObject({ id: 'acme' });
  });

  it('keeps a removed company no longer than one that never existed', async () => {
    await companies.find('acme');
    runtime.advance(60_000);
    answer = () => undefined;
    expect(await companies.find('acme')).toBeUndefined();
    answer = () => ACME;
    runtime.advance(5000);
    expect(await companies.find('acme')).toMatchObject({ id: 'acme' });
  });

  const forDelivery = async (id: string) =>
    companies.findForDelivery(id, runtime.monotonic()).then(
      (company) => company?.id ?? 'none',
      (error: { code: string }) => error.code,
    );

  it('SE-06 limits the lookups for deliveries per second, and not those of the application', async () => {
    const ids = ['stranger-1', 'stranger-2', 'acme', 'bolt'];
    expect(await Promise.all(ids.map(forDelivery))).toEqual([
      'none',
      'none',
      'acme',
      'directory_unavailable',
    ]);
    expect(await companies.find('bolt')).toMatchObject({ id: 'bolt' });
    // Cached by now.
    expect(await forDelivery('bolt')).toBe('bolt');
    expect(await forDelivery('stranger-1')).toBe('none');
    expect(asked).toEqual(['stranger-1', 'stranger-2', 'acme', 'bolt']);
    expect(log.lines).toEqual([expect.stringMatching(/^warn .*more than 3 company lookups/)]);
    runtime.advance(1000);
    expect(await forDelivery('cafe')).toBe('cafe');
  });

  it('SE-06 does not limit ids that had a valid signature, until they are removed', async () => {
    await forDelivery('acme');
    companies.verified('acme');
    runtime.advance(60_000);
    for (let i = 0; i < 3; i += 1) await forDelivery(`stranger-${i}`);
    expect(await forDelivery('stranger-3')).toBe('directory_unavailable');
    expect(await forDelivery('acme')).toBe('acme');
    answer = () => undefined;
    runtime.advance(60_000);
    expect(await forDelivery('acme')).toBe('none');
    runtime.advance(5000);
    for (let i = 0; i < 3; i += 1) await forDelivery(`stranger-${i}`);
    expect(await forDelivery('acme')).toBe('directory_unavailable');
  });

  it('SE-06 ends a lookup without an answer at its time limit, and repeats it later', async () => {
    let found: (company: Company) => void = () => {};
    answer = async () => new Promise((resolve) => (found = resolve));
    const first = forDelivery('acme');
    runtime.advance(4000);
    const second = forDelivery('acme');
    runtime.advance(1000);
    expect(await Promise.all([first, second])).toEqual(Array(2).fill('directory_unavailable'));
    expect(log.lines).toEqual([expect.stringMatching(/^error .*acme.*no answer within 5000 ms/)]);
    // Too late: its lookup has ended.
    found(ACME);
    answer = (id) => ({ ...ACME, id, clientId: 'newer' });
    runtime.advance(1000);
    expect(await companies.find('acme')).toMatchObject({ clientId: 'newer' });
    expect(asked).toEqual(['acme', 'acme']);
  });

  it('SE-06 rejects a delivery at its own deadline, while the lookup goes on', async () => {
    let found: (company: Company) => void = () => {};
    answer = async () => new Promise((resolve) => (found = resolve));
    const arrivedAt = runtime.monotonic();
    runtime.advance(3000);
    const delivery = companies.findForDelivery('acme', arrivedAt);
    runtime.advance(2000);
    await expect(delivery).rejects.toMatchObject({ code: 'directory_unavailable' });
    found(ACME);
    expect(await forDelivery('acme')).toBe('acme');
    expect(asked).toEqual(['acme']);
    expect(runtime.pending).toBe(0);
  });

  it('SE-06 has at most as many lookups for deliveries under way as it may start in a second', async () => {
    answer = async () => new Promise(() => {});
    const hanging = ['a', 'b', 'c'].map(forDelivery);
    runtime.advance(2000);
    expect(await forDelivery('d')).toBe('directory_unavailable');
    runtime.advance(3000);
    await Promise.all(hanging);
    answer = (id) => ({ ...ACME, id });
    expect(await forDelivery('d')).toBe('d');
  });

  it.each([
    ['another spelling', 'ACME', /answered a company with the id "ACME"/],
    ['no id', undefined, /answered a company without a valid "id"/],
    ['an id that is none', 'acme ', /without a valid "id"/],
    ['a number', 17, /without a valid "id"/],
  ])('SE-07 treats an answer with %s as no company', async (_, id, words) => {
    answer = () => ({ ...ACME, id }) as Company;
    expect(await forDelivery('acme')).toBe('none');
    expect(log.lines).toEqual([expect.stringMatching(words)]);
    expect(log.lines[0]).toMatch(
      /^warn .*asked for company "acme".*Return a company only if its "id"/,
    );
    await expect(companies.find('acme')).rejects.toMatchObject({
      code: 'company_unknown',
      message: expect.stringMatching(words),
    });
    runtime.advance(4999);
    expect(await forDelivery('acme')).toBe('none');
    expect(asked).toEqual(['acme']);
    expect(log.lines).toHaveLength(1);
    runtime.advance(1);
    answer = () => ACME;
    expect(await forDelivery('acme')).toBe('acme');
  });

  it('SE-10 logs companies that have a webhook secret in common, once per minute, without the secret', async () => {
    answer = (id) => ({ ...ACME, id, webhookSecret: [`${id}-private`, 'shared-private'] });
    for (const id of ['acme', 'bolt', 'cafe']) await companies.find(id);
    expect(log.lines).toEqual([
      expect.stringMatching(/^warn .*one webhook secret for the companies "acme" and "bolt"/),
    ]);
    expect(log.lines[0]).not.toContain('private');
    runtime.advance(60_000);
    answer = (id) => ({ ...ACME, id, webhookSecret: `${id}-private` });
    for (const id of ['acme', 'bolt', 'cafe']) await companies.find(id);
    expect(log.lines).toHaveLength(1);
  });
});
