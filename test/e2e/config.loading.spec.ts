import { describe, expect, it } from '@jest/globals';
import { printedBy } from '../support/own.process.js';

const BEFORE = `
  import { createRequire } from 'node:module';
  import 'reflect-metadata';
  import { PaymentsEnvironment } from 'nestjs-payments';
  const loaded = (name = 'class-validator') => Object.keys(createRequire(import.meta.url).cache)
    .some((file) => new RegExp('node_modules.' + name + '\\\\W').test(file));`;

const printed = (script: string) => printedBy(`${BEFORE}\n${script}`);

describe('@nestjs/config', () => {
  // dotenv is what it stands on.
  it('is not loaded where the options come from elsewhere', async () => {
    expect(await printed("console.log(loaded('dotenv'))")).toBe('false');
  });

  it('is loaded where the options come through it', async () => {
    const script = `
      import { paymentsConfig } from 'nestjs-payments';
      await Promise.all(paymentsConfig.asProvider().imports);
      console.log(loaded('dotenv'));`;
    expect(await printed(script)).toBe('true');
  });
});

describe('class-validator', () => {
  it('is not loaded where neither an environment nor a class for data needs it', async () => {
    expect(await printed('console.log(loaded())')).toBe('false');
  });

  it('is loaded with the first environment', async () => {
    expect(await printed('new PaymentsEnvironment(); console.log(loaded())')).toBe('true');
  });

  it('knows the rules of a class that extends the environment', async () => {
    const script = `
      import { validateSync } from 'class-validator';
      class Environment extends PaymentsEnvironment {}
      const failures = validateSync(new Environment());
      console.log(failures.map(({ property, constraints }) =>
        property + ' ' + Object.keys(constraints)).join());`;
    expect(await printed(script)).toBe(
      'PAYMENTS_BASE_URL isUrl,PAYMENTS_CLIENT_ID matches,PAYMENTS_CLIENT_SECRET matches,' +
        'PAYMENTS_WEBHOOK_SECRET matches',
    );
  });
});
