import { describe, expect, it } from '@jest/globals';
import type { DynamicModule } from '@nestjs/common';
import { ConfigModule, ConfigService, registerAs } from '@nestjs/config';
import { Test } from '@nestjs/testing';
import { paymentsConfig } from './payments.config.js';

describe('paymentsConfig', () => {
  const theirs = registerAs('payments', () => ({}));

  it('has of its own what registerAs gives a factory, and nothing else', () => {
    const given = (factory: object) => {
      const properties = Object.entries(Object.getOwnPropertyDescriptors(factory));
      return Object.fromEntries(
        properties
          .filter(([name]) => name !== 'length' && name !== 'name')
          .map(([name, { value, ...flags }]) => [
            name,
            { ...flags, value: typeof value === 'function' || value },
          ]),
      );
    };
    expect(given(paymentsConfig)).toEqual(given(theirs));
  });

  it('provides itself as what registerAs makes would', async () => {
    const [ours, other] = [paymentsConfig.asProvider(), theirs.asProvider()];
    expect(ours.inject).toEqual(other.inject);
    expect(ours.useFactory).toEqual(expect.any(Function));
    const options = { baseUrl: 'https://payments.example.com' };
    expect(ours.useFactory(options)).toBe(options);
    const imported = async (given: DynamicModule | Promise<DynamicModule>) => {
      const { module, providers, exports } = await given;
      return {
        module,
        exports,
        providers: providers?.map((one) => ('provide' in one ? one.provide : one)),
      };
    };
    expect(await imported(ours.imports[0])).toEqual(await imported(other.imports[0]));
  });

  it('is found under its name where ConfigModule loads it', async () => {
    const environment = {
      PAYMENTS_BASE_URL: 'https://payments.example.com',
      PAYMENTS_CLIENT_ID: 'the-client-id',
      PAYMENTS_CLIENT_SECRET: 'the-client-secret',
      PAYMENTS_WEBHOOK_SECRET: 'the-webhook-secret',
    };
    const before = { ...process.env };
    Object.assign(process.env, environment);
    try {
      const imports = [ConfigModule.forRoot({ ignoreEnvFile: true, load: [paymentsConfig] })];
      const module = await Test.createTestingModule({ imports }).compile();
      const config = module.get(ConfigService);
      expect(config.get('payments.clientId')).toBe('the-client-id');
      expect(module.get(paymentsConfig.KEY)).toMatchObject({ clientId: 'the-client-id' });
      await module.close();
    } finally {
      for (const name of Object.keys(environment)) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
    }
  });
});
