import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { FakeRuntime } from '../../../../test/support/fake.runtime.js';
import { DirectoryCompanies, ListedCompanies } from './companies.js';
import { resolveCompany } from './company.options.js';
import type { Company } from './company.js';

const ACME: Company = { id: 'acme', clientId: 'c', clientSecret: 's', webhookSecret: 'w' };
const DEFAULTS = { baseUrl: 'https://payments.example.com' };

describe('ListedCompanies', () => {
  const bolt = resolveCompany({ ...ACME, id: 'bolt' }, DEFAULTS);
  const acme = resolveCompany(ACME, DEFAULTS);

  it('finds the only company under "default" too, and one of several under its id alone', async () => {
    expect(await new ListedCompanies([acme]).find('default')).toBe(acme);
    expect(await new ListedCompanies([acme, bolt]).find('default')).toBeUndefined();
    expect(await new ListedCompanies([acme, bolt]).find('bolt')).toBe(bolt);
    expect(await new ListedCompanies([acme]).find('__proto__')).toBeUndefined();
  });
});

describe('DirectoryCompanies', () => {
  let runtime: FakeRuntime;
  let asked: string[];
  let answer: (id: string) => Company | undefined | Promise<Company | undefined>;
  let companies: DirectoryCompanies;
  beforeEach(() => {
    Logger.overrideLogger(false);
    runtime = new FakeRuntime();
    asked = [];
    answer = (id) => (id.startsWith('stranger') ? undefined : { ...ACME, id });
    const find = (id: string) => (asked.push(id), answer(id));
    companies = new DirectoryCompanies({ find }, DEFAULTS, runtime);
  });
  afterEach(() => Logger.overrideLogger(['error']));

  it('has real companies stay in its cache, however many names strangers make up', async () => {
    await companies.find('acme');
    for (let i = 0; i <= 1000; i += 1) await companies.find(`stranger-${i}`);
    asked.length = 0;
    expect(await companies.find('acme')).toMatchObject({ id: 'acme' });
    await companies.find('stranger-1000');
    await companies.find('stranger-1');
    expect(asked).toEqual([]);
    // Of a thousand and one, the oldest had to go.
    await companies.find('stranger-0');
    expect(asked).toEqual(['stranger-0']);
  });

  it('keeps 10,000 companies, the newest', async () => {
    for (let i = 0; i <= 10_000; i += 1) await companies.find(`c-${i}`);
    asked.length = 0;
    await companies.find('c-1');
    await companies.find('c-10000');
    expect(asked).toEqual([]);
    await companies.find('c-0');
    expect(asked).toEqual(['c-0']);
  });

  it('counts the age of an answer from when it came', async () => {
    let found: (company: Company) => void = () => {};
    answer = async () => new Promise((resolve) => (found = resolve));
    const first = companies.find('acme');
    runtime.advance(50_000);
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

  it('shares one look-up among those who come while an old answer is refreshed', async () => {
    await companies.find('acme');
    runtime.advance(60_000);
    const all = await Promise.all([companies.find('acme'), companies.find('acme')]);
    expect(asked).toEqual(['acme', 'acme']);
    expect(all[0]).toBe(all[1]);
  });

  it('keeps no failure, and shares it with those who waited', async () => {
    answer = async () => Promise.reject(new Error('down'));
    const both = await Promise.allSettled([companies.find('acme'), companies.find('acme')]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(both[0]).toMatchObject({ reason: { code: 'directory_unavailable' } });
    expect(asked).toEqual(['acme']);
    answer = () => ACME;
    expect(await companies.find('acme')).toMatchObject({ id: 'acme' });
  });

  it('keeps a company that is gone no longer than one that never was', async () => {
    await companies.find('acme');
    runtime.advance(60_000);
    answer = () => undefined;
    expect(await companies.find('acme')).toBeUndefined();
    answer = () => ACME;
    runtime.advance(5000);
    expect(await companies.find('acme')).toMatchObject({ id: 'acme' });
  });
});
